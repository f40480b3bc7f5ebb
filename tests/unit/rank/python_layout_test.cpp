#include "core/rank/python_layout.h"

#include <string.h>

#include <vector>

#include "catch.h"
#include "core/rank/python_walk.h"

using namespace dshang::rank;

namespace {

// The words of _Py_DebugOffsets of a build without free threading; `in` is what each structure's words are.
std::vector<std::uint64_t> offsets(unsigned minor) {
  std::vector<std::uint64_t> words(3);
  memcpy(words.data(), "xdebugpy", 8);
  words[1] = 0x03000000u | minor << 16 | 0x01f0;
  auto add = [&](std::initializer_list<std::uint64_t> more) { words.insert(words.end(), more); };
  add({100, 1, 2});                                                                      // runtime
  for (unsigned i = 0; i < (minor == 13 ? 13u : 16u); ++i) words.push_back(100000 + i);  // interpreter
  add({400, 0, 8, 16, 72, 152, 160, 200, 208});                                          // thread
  add({88, 8, 0, 56, 80, 70});                                                           // frame
  if (minor == 14) add({64, 0});
  add({208, 112, 120, 128, 136, 68, 52, 96, 104, 200});  // code
  if (minor == 14) add({0});
  add({16, 8});                             // object
  add({400, 24, 88, 168});                  // type
  add({32, 24, 16});                        // tuple
  add({40, 24, 16});                        // list
  if (minor == 14) add({200, 24, 40, 32});  // set
  add({48, 32, 40});                        // dict
  add({24, 16});                            // float
  add({32, 16, 24});                        // int
  add({40, 17, 33});                        // bytes
  add({64, 34, 18, 42});                    // text
  add({100, 0});                            // gc
  return words;
}

}  // namespace

TEST_CASE("described layouts of 3.13 and 3.14") {
  for (unsigned minor : {13u, 14u}) {
    std::vector<std::uint64_t> words = offsets(minor);
    PythonLayout l{};
    REQUIRE(described_layout(words.data(), minor, &l));
    CHECK(l.thread_next == 8);
    CHECK(l.thread_frame == 72);
    CHECK(l.thread_handle == 152);
    CHECK(l.thread_id == 160);
    CHECK(l.frame_previous == 8);
    CHECK(l.frame_code == 0);
    CHECK(l.frame_position == 56);
    CHECK(l.frame_owner == 70);
    CHECK(l.code_file == 112);
    CHECK(l.code_name == 120);
    CHECK(l.code_qualname == 128);
    CHECK(l.code_lines == 136);
    CHECK(l.code_first_line == 68);
    CHECK(l.code_version == 92);
    CHECK(l.code_instructions == 200);
    CHECK(l.object_type == 8);
    CHECK(l.bytes_size == 17);
    CHECK(l.bytes_data == 33);
    CHECK(l.text_state == 34);
    CHECK(l.text_length == 18);
    CHECK(l.text_header == 42);
    CHECK(((l.code_mask & 3) == 0) == (minor == 14));
  }
}

TEST_CASE("a description that is not one is refused") {
  PythonLayout l{};
  std::vector<std::uint64_t> words = offsets(13);
  CHECK_FALSE(described_layout(words.data(), 14, &l));
  CHECK_FALSE(described_layout(words.data(), 15, &l));
  words[20] = 1u << 20;
  CHECK_FALSE(described_layout(words.data(), 13, &l));
  words = offsets(13);
  words[0] = 0;
  CHECK_FALSE(described_layout(words.data(), 13, &l));
}

TEST_CASE("fixed layouts") {
  PythonLayout l{};
  CHECK_FALSE(fixed_layout(7, &l));
  CHECK_FALSE(fixed_layout(13, &l));
  for (unsigned minor = 8; minor <= 12; ++minor) {
    REQUIRE(fixed_layout(minor, &l));
    CHECK(l.minor == minor);
    CHECK((l.position_scale == 0) == (minor >= 11));
    CHECK((l.thread_id == 0) == (minor < 11));
  }
}

TEST_CASE("of a long chain the innermost and the outermost frames are kept") {
  CHECK(place_in_table(0, 5, 30) == 0);
  CHECK(place_in_table(29, 30, 30) == 29);
  unsigned kept = 0;
  int last = -1;
  for (unsigned n = 0; n < 100; ++n) {
    int place = place_in_table(n, 100, 30);
    if (place < 0) continue;
    CHECK(place == last + 1);
    last = place;
    ++kept;
    CHECK((n < 22 || n >= 92));
  }
  CHECK(kept == 30);
}
