#include <cstdlib>

#include "catch.h"
#include "simgpu/core/settings.h"

using namespace simgpu;

namespace {

size_t size_of(const char* text, size_t unit) {
  setenv("SIMGPU_TEST_SIZE", text, 1);
  return size_setting("SIMGPU_TEST_SIZE", 77, unit);
}

int64_t integer_of(const char* text) {
  setenv("SIMGPU_TEST_INTEGER", text, 1);
  return integer_setting("SIMGPU_TEST_INTEGER", 5, 1, 10);
}

}  // namespace

TEST_CASE("sizes have suffixes") {
  constexpr size_t kGiB = size_t{1} << 30;
  CHECK(size_of("123", 1) == 123);
  CHECK(size_of("1k", 1) == 1024);
  CHECK(size_of("1.5G", 1) == kGiB + kGiB / 2);
  CHECK(size_of("40", kGiB) == 40 * kGiB);
  CHECK(size_of("0.25", kGiB) == kGiB / 4);
  CHECK(size_of("512M", kGiB) == kGiB / 2);
  CHECK(size_of("2GiB", 1) == 2 * kGiB);
  CHECK(size_of("", 1) == 77);
}

TEST_CASE("what is no size gives the default") {
  for (const char* text : {"G", "-1", "0", "12X", "1GG", "nan", "1e30"}) {
    CAPTURE(text);
    CHECK(size_of(text, 1) == 77);
  }
}

TEST_CASE("integers have a range") {
  CHECK(integer_of("10") == 10);
  CHECK(integer_of("11") == 5);
  CHECK(integer_of("0") == 5);
  CHECK(integer_of("3x") == 5);
  CHECK(integer_of("") == 5);
}

TEST_CASE("choices are words") {
  setenv("SIMGPU_TEST_CHOICE", "off", 1);
  CHECK(choice_setting("SIMGPU_TEST_CHOICE", {"int", "off"}) == "off");
  setenv("SIMGPU_TEST_CHOICE", "on", 1);
  CHECK(choice_setting("SIMGPU_TEST_CHOICE", {"int", "off"}) == "int");
}
