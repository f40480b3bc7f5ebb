// Any text taken for the readable form of records: it is refused with a line, or leads back to itself.
#include <cstdio>
#include <cstdlib>

#include "core/job/dump.h"
#include "core/job/parse.h"
#include "tests/fuzz/seeds.h"

using namespace dshang::job;

namespace {

[[noreturn]] void fail(const char* what, const std::string& more) {
  std::fprintf(stderr, "fuzz_parse: %s\n%s\n", what, more.c_str());
  std::abort();
}

std::string dump_all(const Parsed& parsed, const Names& names) {
  std::string out;
  for (const RankRecords& records : parsed.ranks) out += dump(records, names);
  return out;
}

constexpr const char* kSeed = R"(# two ranks
site here truncated "/p/train.py:10 forward | ?:40 main"
rank 0 pid 100 world 2 host "node 1" start 5.25
comm world
comm pair id=0x17 parent=world size=2 state=creating site=here
fact env.DSHANG_SITE_SKIP train.py
thread 17 calls own inside=ncclAllGather
visit step 1
visit micro_step 2
visit phase_push forward
visit module_enter layers.0
call all_gather 1000 bf16 site=here
visit torn
call torn
visit gather "1,2" params=0x12
call send 5 f32 peer=1 comm=pair flags=marked+0x800
call all_reduce 1 f32 avg queued group=3 done=-
visit module_exit
visit trace_mode INVALID training=no
visit teardown
memory step=1 device=100 device_peak=200
alloc_failed 100 kind=host retried=yes at=4.5
exception ValueError "bad \"value\"\n\x1b"
stack 9 source=raw site="a.py:1 f"
now device=5
process step=3 python=off
ending signal 9 at=2
rank 1
op only_one collective
op other send
first calls=10
comm world calls=5
call only_one
call @1 peer=3
)";

}  // namespace

std::vector<std::string> fuzz_seeds() { return {kSeed}; }
std::vector<std::string> fuzz_words() {
  return {"\n",
          " ",
          "\"",
          "=",
          "-",
          "#",
          "\\",
          "0x",
          "at=",
          "99999999999999999999",
          "rank 3\n",
          "call all_gather\n",
          "visit phase_pop\n",
          "%",
          "|",
          ":",
          "first visits=5\n",
          "comm c\n",
          "site=",
          "\xff",
          "op x\n",
          "@"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  Names names;
  Parsed parsed = parse(text, names);
  if (!parsed.error.empty()) {
    if (!parsed.error.starts_with("line ") || !parsed.ranks.empty())
      fail("an error without its line", parsed.error);
    if (parsed.error.find('\n') != std::string::npos) fail("an error of several lines", parsed.error);
    return 0;
  }
  std::string once = dump_all(parsed, names);
  Names again;
  Parsed second = parse(once, again);
  if (!second.error.empty()) fail("the dump cannot be parsed", second.error + "\n" + once);
  std::string twice = dump_all(second, again);
  if (twice != once) fail("the dump of the parsed dump differs", once + "\n----\n" + twice);
  return 0;
}
