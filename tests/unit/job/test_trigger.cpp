#include "core/job/model.h"
#include "core/job/trigger.h"
#include "made.h"

using namespace dshang::job;

namespace {

const std::string kGather = "call all_gather 100 bf16\n";

// True when the detectors are asked for within `seconds`, looking every 50 ms.
bool asks_within(Trigger& trigger, Job& job, double seconds) {
  for (double t = 0; t < seconds; t += 0.05) {
    if (trigger.look(job)) return true;
    job.journal.now_ns += kSecondNs / 20;
  }
  return false;
}

}  // namespace

TEST_CASE("a healthy job asks for nothing", "[trigger]") {
  auto job = made(rank(0, 2, repeat(40, kGather)) + rank(1, 2, repeat(38, kGather)));
  Trigger trigger;
  CHECK_FALSE(asks_within(trigger, *job, 60));
  CHECK_FALSE(trigger.suspicious());
}

TEST_CASE("a job of which nothing is recorded any more is watched after half the threshold", "[trigger]") {
  auto job = made(rank(0, 2, repeat(40, kGather)) + rank(1, 2, repeat(40, kGather)));
  for (auto& process : job->processes) process->journal.samples.resize(1);  // it is seen from outside
  Trigger trigger;
  CHECK_FALSE(asks_within(trigger, *job, 4.9));
  CHECK(asks_within(trigger, *job, 0.3));
  CHECK(trigger.suspicious());
}

TEST_CASE("a new peak near the end of the device is looked at, and enough steps to see memory grow", "[trigger]") {
  auto with = [](const std::string& memory) { return made(rank(0, 2, repeat(40, kGather) + memory) + rank(1, 2, repeat(40, kGather))); };
  std::string line = "memory step=7 allocated_peak=95 device_total=100\n";
  auto tight = with(line), same = with(line + line), roomy = with("memory step=7 allocated_peak=60 device_total=100\n");
  auto many = with(repeat(48, "memory step=7 allocated_peak=10 device_total=100\n"));
  Trigger one, two, three, four;
  CHECK(asks_within(one, *tight, 1.2));
  CHECK_FALSE(asks_within(one, *tight, 4));
  CHECK(asks_within(two, *same, 1.2));
  CHECK_FALSE(asks_within(two, *same, 4));
  CHECK_FALSE(asks_within(three, *roomy, 4));
  CHECK(asks_within(four, *many, 1.2));
}

TEST_CASE("a creation that goes on, and ranks without any communicator, are watched", "[trigger]") {
  std::string creating = "comm more size=2 state=creating ready=-\n";
  for (const std::string& text : {rank(0, 2, kGather + creating) + rank(1, 2, kGather), std::string("rank 0 world 2\nrank 1 world 2\n")}) {
    auto job = made(text);
    Trigger trigger;
    CHECK(asks_within(trigger, *job, 1.6));
    job->journal.now_ns += kSecondNs;
    CHECK(asks_within(trigger, *job, 1));
    CHECK(trigger.suspicious());
  }
}

TEST_CASE("a difference is explained as soon as it has settled", "[trigger]") {
  auto job = made(rank(0, 2, kGather + "call all_gather 5 bf16 queued\n") + rank(1, 2, kGather + "call all_gather 6 bf16 queued\n"));
  Trigger trigger;
  CHECK_FALSE(trigger.look(*job));
  CHECK(asks_within(trigger, *job, 0.6));
}

TEST_CASE("a call made by some only is no difference; it is looked at when nothing moves, and watched when it lasts", "[trigger]") {
  auto job = made(rank(0, 2, kGather + "call all_gather 5 bf16 queued\n") + rank(1, 2, kGather));
  Trigger trigger;
  CHECK_FALSE(asks_within(trigger, *job, 0.9));
  CHECK(asks_within(trigger, *job, 1));
  CHECK(trigger.suspicious());
  job->journal.now_ns += 5 * kSecondNs;  // half the threshold of 10 s
  CHECK(asks_within(trigger, *job, 1.1));
}

TEST_CASE("hosts that wait for their devices in different communicators are looked at soon, then rarely", "[trigger]") {
  auto in = [](const std::string& comm, const std::string& function) {
    return "comm a id=0x11\ncomm b id=0x22\nthread 100 calls inside=" + function +
           " since=0.05\ncall all_reduce 5 f32 sum queued comm=" + comm + "\n";
  };
  const std::string device = "cudaDeviceSynchronize", stream = "cudaStreamSynchronize";
  auto crossed = made(rank(0, 2, in("a", device)) + rank(1, 2, in("b", device)), 0.1);
  Trigger trigger;
  CHECK_FALSE(asks_within(trigger, *crossed, 0.1));
  CHECK(asks_within(trigger, *crossed, 0.3));
  CHECK_FALSE(asks_within(trigger, *crossed, 0.4));
  for (const std::string& others : {in("a", device), in("b", stream)}) {
    auto job = made(rank(0, 2, in("a", device)) + rank(1, 2, others), 0.1);
    Trigger other;
    CHECK_FALSE(asks_within(other, *job, 0.8));
  }
}

TEST_CASE("an ending, a failed allocation and an exception are worth a look", "[trigger]") {
  std::string exception = "exception ValueError text\n", failure = "alloc_failed 5 result=2\n";
  for (const std::string& news : {exception, failure}) {
    auto job = made(rank(0, 2, kGather + news) + rank(1, 2, kGather));
    Trigger trigger;
    CHECK(asks_within(trigger, *job, 1));
  }
  auto job = made(rank(0, 2, kGather) + rank(1, 2, kGather));
  job->processes[0]->journal.death = Death{job->journal.now_ns, EndingKnown::kStatus, true, 9};
  Trigger trigger;
  CHECK(asks_within(trigger, *job, 1));
}

TEST_CASE("facts and trace modes are compared once, soon, and end no waiting", "[trigger]") {
  for (const std::string& news : {std::string("fact loader.length 5\n"), std::string("visit trace_mode INVALID\n")}) {
    auto job = made(rank(0, 2, kGather + news) + rank(1, 2, kGather));
    Trigger trigger;
    CHECK(asks_within(trigger, *job, 1.1));
    CHECK_FALSE(asks_within(trigger, *job, 3));
    CHECK_FALSE(trigger.suspicious());
  }
}

TEST_CASE("a difference settles also where facts are new", "[trigger]") {
  std::string fact = "fact loader.length 5\n";
  auto job = made(rank(0, 2, fact + "call all_gather 5 bf16 queued\n") + rank(1, 2, fact + "call all_gather 6 bf16 queued\n"));
  Trigger trigger;
  CHECK_FALSE(trigger.look(*job));
  CHECK_FALSE(asks_within(trigger, *job, 0.15));
  CHECK(asks_within(trigger, *job, 0.2));
}

TEST_CASE("the threshold is widened by the job's own rhythm", "[model]") {
  std::string slow, fast;
  for (int step = 1; step <= 6; ++step) {
    slow += "visit step " + std::to_string(step) + " at=" + std::to_string(step * 20) + "\n";
    fast += "visit step " + std::to_string(step) + " at=" + std::to_string(step) + "\n";
  }
  CHECK(make_view(*made(rank(0, 1, slow))).stall_after() == 60);
  CHECK(make_view(*made(rank(0, 1, fast))).stall_after() == 10);
  CHECK(make_view(*made(rank(0, 1, "visit step 1\n"))).stall_after() == 10);
}

TEST_CASE("calls from places that had not met are looked at, ever more rarely", "[trigger]") {
  auto from = [](const std::string& line) { return repeat(4, "call all_reduce 1 f32 sum site=\"t.py:" + line + " f\"\n"); };
  auto job = made(rank(0, 2, from("1")) + rank(1, 2, from("2")));
  job->params.stall_after = 3600;
  Trigger trigger;
  CHECK(asks_within(trigger, *job, 1));
  int asked = 0;
  for (int i = 0; i < 20; ++i) asked += asks_within(trigger, *job, 60);
  CHECK(asked >= 5);
  CHECK(asked <= 12);
  auto same = made(rank(0, 2, from("1")) + rank(1, 2, from("1")));
  same->params.stall_after = 3600;
  Trigger other;
  CHECK_FALSE(asks_within(other, *same, 60));
}
