#include <random>

#include "catch.h"
#include "core/job/dump.h"
#include "core/job/parse.h"
#include "core/job/text_line.h"
#include "process.h"

using namespace dshang;
using namespace dshang::job;
using dshang::job::test::kDoneFlags;
using dshang::job::test::Process;

namespace {

std::string error_of(const std::string& text) {
  Names names;
  Parsed parsed = parse(text, names);
  CHECK(parsed.error.empty() == !parsed.ranks.empty());
  return parsed.error;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

std::string again(const std::string& text) {
  Names names;
  Parsed parsed = parse(text, names);
  INFO(text);
  CHECK(parsed.error == "");
  std::string out;
  for (const RankRecords& records : parsed.ranks) out += dump(records, names);
  return out;
}

constexpr const char* kByHand = R"(# two ranks, one module skipped
site here "/p/train.py:10 forward | /p/train.py:40 main"

rank 0 pid 100 world 2
comm world
visit step 1
visit phase_push forward
visit module_enter layers.0
call all_gather 1000 bf16 site=here
visit module_exit
call all_reduce 1 f32 sum queued
visit phase_pop
call send 5 f32 peer=1 comm=world

rank 1 pid 101 world 2
comm world
comm pair id=pair parent=world size=2 state=creating
fact seed "17 or so"
call all_gather 1000 bf16 at=1.5 return=1.500000001 done=- entered
exception ValueError "bad \"value\"\nin line 2" site="train.py:3 f"
ending signal 9 at=2
)";

}  // namespace

TEST_CASE("a text written by hand") {
  Names names;
  Parsed parsed = parse(kByHand, names);
  REQUIRE(parsed.error == "");
  REQUIRE(parsed.ranks.size() == 2);
  const RankRecords& r = parsed.ranks[0];
  CHECK(r.rank == 0);
  CHECK(r.pid == 100);
  CHECK(r.local_rank == 0);
  CHECK_FALSE(r.provisional);
  CHECK(r.world_rank == 1);
  CHECK(r.step == 1);
  REQUIRE(r.comms.size() == 1);
  CHECK(r.comms[0].size == 2);
  CHECK(r.comms[0].rank == 0);
  CHECK(r.comms[0].calls == 2);
  CHECK(r.comms[0].id != 0);
  REQUIRE(r.calls.size() == 3);
  const Call& gather = r.calls.at(0);
  CHECK(gather.number == 1);
  CHECK(gather.count == 1000);
  CHECK(gather.dtype == flight::DType::kBF16);
  CHECK(gather.step == 1);
  CHECK(names.text(gather.phase) == "forward");
  CHECK(names.text(gather.module) == "layers.0");
  CHECK(names.place_text(names.place_of(gather.site)) == "p/train.py:10 forward");
  CHECK(names.site(gather.site).frames.size() == 2);
  CHECK(gather.flags == kDoneFlags);
  CHECK(gather.done_ns == gather.enter_ns);
  CHECK(gather.visits_before == 3);
  CHECK(gather.enter_ns == r.start_ns + 4000000);
  const Call& reduce = r.calls.at(1);
  CHECK(reduce.number == 2);
  CHECK(reduce.reduce_op == flight::ReduceOp::kSum);
  CHECK(reduce.module == 0);
  CHECK(reduce.done_ns == 0);
  CHECK(reduce.return_ns == reduce.enter_ns);
  const Call& send = r.calls.at(2);
  CHECK(send.number == 1);
  CHECK(send.root_or_peer == 1);
  CHECK(send.phase == 0);
  REQUIRE(r.visits.size() == 5);
  CHECK(names.text(r.visits.at(4).phase) == "forward");
  CHECK(r.visits.at(4).calls_before == 2);
  CHECK(names.text(r.visits.at(3).module) == "layers.0");

  const RankRecords& other = parsed.ranks[1];
  CHECK(other.comms[0].id == r.comms[0].id);
  CHECK(other.comms[1].parent == r.comms[0].id);
  CHECK(other.comms[1].ready_ns == 0);
  CHECK(other.calls.at(0).enter_ns == other.start_ns + 1500000000);
  CHECK(other.calls.at(0).return_ns == other.start_ns + 1500000001);
  CHECK(other.calls.at(0).done_ns == 0);
  CHECK(names.text(other.facts.at(0).value) == "17 or so");
  CHECK(names.text(other.exceptions.at(0).message) == "bad \"value\"\nin line 2");
  CHECK(other.ending == flight::EndingKind::kSignal);
  CHECK(other.ending_code == 9);
}

TEST_CASE("what dump made is made again from it") {
  std::string once = again(kByHand);
  CHECK(again(once) == once);
  CHECK(says(once, "call all_gather 1000 bf16 site=s1\n"));
  CHECK(says(once, "call all_reduce 1 f32 sum queued\n"));
  CHECK(says(once, "call all_gather 1000 bf16 entered at=1.5 return=1.500000001\n"));
  CHECK(says(once, "site s1 \"/p/train.py:10 forward | /p/train.py:40 main\"\n"));
}

TEST_CASE("unusual values survive") {
  const char* text = R"(rank -1 world 3 host "node a#1" start 0.000000001
op weird collective rooted bits=0x80000000
op ""
op weird send
first calls=100 visits=7 facts=3
comm a rank=-1 size=-5 color=-2 free_before=7 calls=18446744073709551615
comm b id=0
thread 77 own bits=0x100 inside="a b"
visit torn
call torn
call @1 3 f16
call @2 3 f16 max flags=marked+0x400 group=5 peer=-7 comm=b number=9
call weird root=2 returned thread=4294967295 visits_before=3 at=- number=0
visit none step=-9223372036854775807 micro=3 detail=-  phase="-" module="\x0041"
visit step -
visit module_exit calls_before=1 at=-9223372035.854775807
visit phase_push -
visit phase_push "a=b"
visit trace_mode INVALID training=yes
visit gather "1,2,3" params=0xff
memory step=- device=5 device_peak=4 pool=1
alloc_failed 77 retried=yes kind=pool site="a%20b.py:-3 | ?:0 f | %3f:1 g%7c" free=0
exception - "no type" thread=3
stack 9 source=raw request=3
now device=1 registered=9 retries=2
process provisional=yes world_rank=7 step=-4 python=off poll=0.5 async_error=0x10000000f dropped_sites=1
ending exit -3
)";
  std::string once = again(text);
  CHECK(again(once) == once);
  CHECK(says(once, "rank -1 start 0.000000001 world 3 host \"node a#1\"\n"));
  CHECK(says(once, "calls=18446744073709551615"));
  CHECK(says(once, "visit step -\n"));
  CHECK(says(once, "phase=\"-\""));
  CHECK(says(once, "call @1 3 f16"));
  CHECK(says(once, "flags=marked+0x400"));
  CHECK(says(once, "a%20b.py:-3 | ?:0 f | %3f:1 g%7c"));
  CHECK(says(once, "first calls=100 visits=7 facts=3\n"));
}

TEST_CASE("loaded records survive") {
  Process process;
  process.comm(77);
  std::uint32_t site = process.unresolved_site(5);
  process.resolve(
      site, {{"/v/site-packages/torch/c10d.py", "all_gather"}, {"/home/u/my project/train.py", "<lambda>"}});
  std::mt19937 random(1);
  std::uint32_t modules[] = {0, process.writer.string("a.b"), process.writer.string("with space | bar")};
  for (int i = 0; i < 300; ++i) {
    if (random() % 2) {
      auto visit = process.writer.open_visit();
      visit->kind = static_cast<flight::VisitKind>(random() % 11);
      visit->module = modules[random() % 3];
      visit->phase = modules[random() % 3];
      visit->step = static_cast<std::int64_t>(random() % 3);
      visit->calls_before = process.writer.header().call_head.load() - random() % 2;
      visit->time_ns = 1000 + random();
      visit.complete();
    } else {
      process.call({.count = random() % 4,
                    .site = random() % 2 ? site : 0,
                    .module = modules[random() % 3],
                    .flags = static_cast<std::uint32_t>(random() % 1024),
                    .op = static_cast<std::uint8_t>(random() % 4)});
    }
  }
  process.writer.fact("env.PATH", "/usr/bin:/bin");
  process.writer.ending(flight::EndingKind::kExit, 0);
  process.writer.open_call();  // never completed
  process.update();
  std::string once = dump(process.records, *process.names);
  CHECK(again(once) == once);
  CHECK(says(once, "call torn\n"));

  Names names;
  Parsed parsed = parse(once, names);
  REQUIRE(parsed.ranks.size() == 1);
  const RankRecords &a = process.records, &b = parsed.ranks[0];
  REQUIRE(b.calls.size() == a.calls.size());
  REQUIRE(b.visits.size() == a.visits.size());
  bool equal = true;
  for (std::uint64_t n = 0; n < a.calls.size(); ++n) {
    const Call &x = a.calls.at(n), &y = b.calls.at(n);
    equal = equal && x.count == y.count && x.number == y.number && x.flags == y.flags &&
            x.enter_ns == y.enter_ns && x.visits_before == y.visits_before && x.op == y.op &&
            x.step == y.step && x.torn == y.torn && process.text(x.module) == names.text(y.module) &&
            process.names->place_text(process.names->place_of(x.site)) ==
                names.place_text(names.place_of(y.site));
  }
  CHECK(equal);
  CHECK(b.start_ns == a.start_ns);
  CHECK(b.host == a.host);
  CHECK(b.pid_start_ticks == a.pid_start_ticks);
  CHECK(b.ending == flight::EndingKind::kExit);
}

TEST_CASE("DSHANG_SITE_SKIP in a text decides its sites") {
  Names names;
  Parsed parsed = parse(
      "rank 0\ncomm w\nfact env.DSHANG_SITE_SKIP wrap.py\ncall all_gather site=\"wrap.py:1 g | t.py:2 f\"",
      names);
  REQUIRE(parsed.error == "");
  CHECK(names.place_text(names.place_of(parsed.ranks[0].calls.at(0).site)) == "t.py:2 f");
}

TEST_CASE("bad text gets its line and what is allowed") {
  CHECK(error_of("# nothing\n\ncall all_gather") == "line 3: the first line is `rank <number> ...`");
  CHECK(says(error_of("rank 0\ncomm w\ncall all_gathr 5"),
             "line 3: unknown operation \"all_gathr\"; allowed: all_gather all_reduce"));
  CHECK(error_of("rank 0\ncall all_gather 5") ==
        "line 2: a call needs a communicator: `comm <name>` stands before it");
  CHECK(says(error_of("rank 0\ncomm w\ncall all_gather 5 coutn=3"),
             "line 3: unknown key coutn= in call; allowed: group= flags= root= comm="));
  CHECK(says(error_of("rank 0\ncomm w\ncall all_gather 5 bf17"),
             "unknown word \"bf17\" in call; allowed: torn <count> no_dtype i8"));
  CHECK(error_of("rank 0\ncomm w\ncall all_gather at=1 at=2") == "line 3: at= stands twice");
  CHECK(says(error_of("rank 0\ncomm w\ncall all_gather comm=v"), "no communicator \"v\"; there are: w"));
  CHECK(error_of("rank 0\ncomm w\ncomm w") == "line 3: communicator \"w\" stands twice");
  CHECK(error_of("rank 0\nvisit step") == "line 2: visit needs a step");
  CHECK(error_of("rank 0\nvisit") == "line 2: visit needs a word");
  CHECK(says(error_of("rank 0\nvisit sleep"), "unknown word \"sleep\"; allowed: none step micro_step"));
  CHECK(error_of("rank") == "line 1: rank needs a number");
  CHECK(error_of("rank 0 pid") == "line 1: nothing stands behind pid");
  CHECK(says(error_of("rank 0 pdi 5"), "unknown key pdi= in rank; allowed: start= pid= world="));
  CHECK(says(error_of("rank 0 pid=5 world"), "words and values stand in turns"));
  CHECK(says(error_of("rank 0 pid 99999999999"), "99999999999 is out of range: -2147483648 to 2147483647"));
  CHECK(says(error_of("rank 0\nfacts a b"), "line 2: unknown line \"facts\"; allowed: rank site"));
  CHECK(says(error_of("rank 0\nfact a \"b"), "a quoted text has no end"));
  CHECK(says(error_of("rank 0\nfact a b=c d"), "unknown key b= in fact; allowed: at="));
  CHECK(says(error_of("rank 0\nfact a \"b\\q\""), "behind \\ stands one of"));
  CHECK(says(error_of("rank 0\nfact a b at=1.0000000001"), "\"1.0000000001\" is no time in seconds"));
  CHECK(says(error_of("rank 0\nfact a b at=99999999999999"), "is no time in seconds"));
  CHECK(says(error_of("rank 0\nfact a b at="), "nothing stands behind at="));
  CHECK(says(error_of("rank 0\ncomm w\ncall all_gather site=here"),
             "\"here\" is no frame: a frame is file:line function"));
  CHECK(says(error_of("rank 0\ncomm w\ncall all_gather flags=done+lost"),
             "unknown word \"lost\"; allowed: returned failed"));
  CHECK(error_of("rank 0\nfact a b\nfirst calls=3") == "line 3: `first` stands before the records");
  CHECK(error_of("rank 0\nprocess\nfact a b\nprocess") == "line 4: a rank has one line `process`");
  CHECK(says(error_of("rank 0\nprocess pytohn=off\nfact a b\n"), "line 2: unknown key pytohn= in process"));
  CHECK(error_of("rank 0\ncomm w\ncall all_gather\nop x") == "line 4: `op` stands before the calls");
  Names names;
  CHECK(parse("", names).ranks.empty());
  CHECK(parse("", names).error == "");
}

TEST_CASE("times are exact") {
  for (std::int64_t ns :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{1500000000}, INT64_MAX, INT64_MIN}) {
    CHECK(seconds_value(seconds_text(ns)) == ns);
  }
  CHECK(seconds_text(1500000000) == "1.5");
  CHECK(seconds_text(-20) == "-0.00000002");
  CHECK(seconds_text(3000000000) == "3");
}
