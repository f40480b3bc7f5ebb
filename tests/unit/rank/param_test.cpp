#include "core/rank/param.h"

#include <stdlib.h>
#include <string.h>

#include <string>

#include "catch.h"

using namespace dshang;

namespace {

DSHANG_PARAM(bool, TEST_FLAG, "1", "0|1", "a switch");
DSHANG_PARAM(integer, TEST_COUNT, "10", "1..100", "a number");
DSHANG_PARAM(seconds, TEST_WAIT, "0.5", "0.1..60", "a time");
DSHANG_PARAM(string, TEST_PATH, "nowhere", "a path", "a text");
DSHANG_PARAM(percent_or_bytes, TEST_ROOM, "5%", "0%..100%", "an amount");
DSHANG_PARAM(choice, TEST_WAY, "report", "report|fail|exec:*", "one of some");

// A parameter reads the environment once: a test reads through a fresh copy.
template <typename P>
auto read(const P& param, const char* text) {
  std::string name = std::string("DSHANG_") + param.descriptor().name;
  if (text) {
    setenv(name.c_str(), text, 1);
  } else {
    unsetenv(name.c_str());
  }
  return P(param.descriptor()).value();
}

bool near(double a, double b) { return a - b < 1e-9 && b - a < 1e-9; }

std::string complaint(const rank::ParamDescriptor& param, const char* text) {
  char line[512] = "";
  return rank::complain_about(param, text, line, sizeof line) ? line : "";
}

extern "C" const char __start_dshang_params[] __attribute__((weak));
extern "C" const char __stop_dshang_params[] __attribute__((weak));

}  // namespace

TEST_CASE("values of every type") {
  CHECK(read(param_TEST_FLAG, nullptr) == true);
  for (const char* off : {"0", "no", "OFF", "false"}) CHECK(read(param_TEST_FLAG, off) == false);
  CHECK(read(param_TEST_COUNT, nullptr) == 10);
  CHECK(read(param_TEST_COUNT, "99") == 99);
  CHECK(near(read(param_TEST_WAIT, nullptr), 0.5));
  CHECK(near(read(param_TEST_WAIT, "12.25"), 12.25));
  CHECK(near(read(param_TEST_WAIT, "3s"), 3));
  CHECK(std::string(read(param_TEST_PATH, nullptr)) == "nowhere");
  CHECK(std::string(read(param_TEST_PATH, "/some/where")) == "/some/where");
  CHECK(read(param_TEST_ROOM, nullptr).of(1000) == 50);
  CHECK(read(param_TEST_ROOM, "2.5%").of(1000) == 25);
  CHECK(read(param_TEST_ROOM, "2GiB").of(1) == 2147483648u);
  CHECK(read(param_TEST_ROOM, "512M").of(1) == 536870912u);
  CHECK(read(param_TEST_ROOM, "4096").of(1) == 4096u);
  CHECK(read(param_TEST_WAY, nullptr).index == 0);
  CHECK(read(param_TEST_WAY, "fail").index == 1);
  CHECK(read(param_TEST_WAY, "exec:mail me").index == 2);
  CHECK(std::string(read(param_TEST_WAY, "exec:mail me").text) == "exec:mail me");
}

TEST_CASE("a bad value gives the default and one line that names the range") {
  for (const char* bad : {"0", "101", "ten", "1.5", "99999999999999999999", "-1", "1 "}) {
    CHECK(read(param_TEST_COUNT, bad) == 10);
    CHECK(complaint(param_TEST_COUNT.descriptor(), bad) ==
          std::string("DSHANG_TEST_COUNT=") + bad +
              " is not a whole number in 1..100; the default 10 is used");
  }
  CHECK(complaint(param_TEST_WAIT.descriptor(), "0.01") ==
        "DSHANG_TEST_WAIT=0.01 is not a number of seconds in 0.1..60; the default 0.5 is used");
  CHECK(
      complaint(param_TEST_ROOM.descriptor(), "101%") ==
      "DSHANG_TEST_ROOM=101% is not a number of bytes, or a percentage in 0%..100%; the default 5% is used");
  CHECK(complaint(param_TEST_WAY.descriptor(), "exec:") ==
        "DSHANG_TEST_WAY=exec: is not one of report|fail|exec:*; the default report is used");
  CHECK(complaint(param_TEST_FLAG.descriptor(), "2") ==
        "DSHANG_TEST_FLAG=2 is not one of 0|1; the default 1 is used");
  const std::string long_path(5000, 'a');
  CHECK(complaint(param_TEST_PATH.descriptor(), long_path.c_str()) ==
        "DSHANG_TEST_PATH=" + long_path.substr(0, 80) + "... is longer than 4095 bytes; the default nowhere is used");
  CHECK(complaint(param_TEST_PATH.descriptor(), long_path.substr(0, 4095).c_str()).empty());
  CHECK(read(param_TEST_PATH, long_path.c_str()) == std::string("nowhere"));
  for (const char* bad : {"", "1..2", "5", "x%", "5%%", "-1"}) {
    if (*bad && strcmp(bad, "5") != 0) CHECK_FALSE(rank::param_accepts(param_TEST_ROOM.descriptor(), bad));
  }
  CHECK(complaint(param_TEST_COUNT.descriptor(), "").empty());
  CHECK(complaint(param_TEST_COUNT.descriptor(), "7").empty());
}

TEST_CASE("a value is read once") {
  setenv("DSHANG_TEST_COUNT", "20", 1);
  CHECK(param_TEST_COUNT.value() == 20);
  setenv("DSHANG_TEST_COUNT", "30", 1);
  CHECK(param_TEST_COUNT.value() == 20);
}

TEST_CASE("every declared parameter is sound") {
  const char* at = __start_dshang_params;
  REQUIRE(at != nullptr);
  REQUIRE((__stop_dshang_params - at) % sizeof(rank::ParamDescriptor) == 0);
  unsigned own = 0;
  for (; at < __stop_dshang_params; at += sizeof(rank::ParamDescriptor)) {
    const auto& param = *reinterpret_cast<const rank::ParamDescriptor*>(at);
    INFO(param.name);
    CHECK(memcmp(param.magic, rank::kParamMagic, sizeof param.magic) == 0);
    CHECK(rank::param_accepts(param, param.fallback));
    CHECK(strlen(param.text) > 5);
    own += strncmp(param.name, "TEST_", 5) == 0;
  }
  CHECK(own == 6);
}
