#include "catch.h"
#include "monitor/as_of.h"

using namespace dshang;
using namespace dshang::monitor;

namespace {

job::Call call(std::uint64_t number, std::uint64_t enter, std::uint64_t returned, std::uint64_t done) {
  job::Call call;
  call.number = number;
  call.enter_ns = enter;
  call.return_ns = returned;
  call.done_ns = done;
  if (returned) call.flags |= flight::kCallReturned;
  if (done) call.flags |= flight::kCallDone;
  return call;
}

job::RankRecords records() {
  job::RankRecords records;
  records.provisional = false;
  records.world_rank = 2;
  flight::OpInfo op{};
  op.traits = flight::kOpCollective;
  records.ops = {op};
  job::Comm comm;
  comm.state = flight::CommState::kDestroyed;
  comm.begin_ns = 10;
  comm.ready_ns = 20;
  comm.end_ns = 90;
  comm.calls = 3;
  records.comms = {comm};
  records.calls.drop_before(100);  // older ones were overwritten
  records.calls.push(call(1, 30, 31, 40));
  records.calls.push(call(2, 50, 51, 80));
  records.calls.push(call(3, 70, 0, 0));
  for (std::int64_t step : {1, 2}) {
    job::Visit visit;
    visit.kind = flight::VisitKind::kStep;
    visit.step = step;
    visit.time_ns = static_cast<std::uint64_t>(step) * 30;
    records.visits.push(visit);
  }
  records.step = 2;
  records.ending = flight::EndingKind::kExit;
  records.ending_code = 1;
  records.ending_ns = 95;
  return records;
}

}  // namespace

TEST_CASE("at the last moment everything is known") {
  job::RankRecords all = records();
  job::RankRecords same = as_of(all, 100);
  CHECK(same.calls.first() == 100);
  CHECK(same.calls.end() == 103);
  CHECK(same.comms[0].state == flight::CommState::kDestroyed);
  CHECK(same.comms[0].calls == 3);
  CHECK(same.step == 2);
  CHECK(same.ending == flight::EndingKind::kExit);
}

TEST_CASE("before, what came later is not") {
  job::RankRecords earlier = as_of(records(), 55);
  REQUIRE(earlier.calls.end() == 102);
  CHECK(earlier.calls.at(100).flags == (flight::kCallReturned | flight::kCallDone));
  CHECK(earlier.calls.at(101).flags == flight::kCallReturned);
  CHECK(earlier.calls.at(101).done_ns == 0);
  CHECK(earlier.comms[0].state == flight::CommState::kReady);
  CHECK(earlier.comms[0].calls == 2);
  CHECK(earlier.visits.size() == 1);
  CHECK(earlier.step == 1);
  CHECK(earlier.ending == flight::EndingKind::kNone);
  CHECK_FALSE(earlier.provisional);
}

TEST_CASE("a communicator that is being made, and one that is not there") {
  CHECK(as_of(records(), 15).comms[0].state == flight::CommState::kCreating);
  job::RankRecords before = as_of(records(), 5);
  CHECK(before.comms.empty());
  CHECK(before.calls.empty());
  CHECK(before.provisional);
  CHECK(before.world_rank == 0);
}

TEST_CASE("a call of a group that had not ended was pending") {
  job::RankRecords all = records();
  all.calls.at(101).flags |= flight::kCallInGroup;
  CHECK(as_of(all, 50).calls.at(101).flags == (flight::kCallInGroup | flight::kCallGroupPending));
}

TEST_CASE("deaths and looks that came later are forgotten") {
  job::ProcessJournal journal;
  for (std::uint64_t time : {10, 20, 30}) {
    job::HostSample sample;
    sample.time_ns = time;
    journal.samples.push_back(sample);
  }
  journal.death = job::Death{25, job::EndingKnown::kStatus, true, 9};
  CHECK(as_of(journal, 24).samples.size() == 2);
  CHECK_FALSE(as_of(journal, 24).death);
  CHECK(as_of(journal, 25).death);
}

TEST_CASE("the newest time is that of whatever came last") {
  CHECK(newest_time(records()) == 95);
  job::RankRecords running = records();
  running.ending_ns = 0;
  CHECK(newest_time(running) == 90);
  running.poll_ns = 120;
  CHECK(newest_time(running) == 120);
  running.calls.at(102).done_ns = 130;
  CHECK(newest_time(running) == 130);
  job::ProcessJournal journal;
  CHECK(newest_time(journal) == 0);
  journal.attach_ns = 5;
  job::HostSample sample;
  sample.time_ns = 7;
  journal.samples.push_back(sample);
  CHECK(newest_time(journal) == 7);
  journal.death = job::Death{9, job::EndingKnown::kStatus, true, 9};
  CHECK(newest_time(journal) == 9);
}
