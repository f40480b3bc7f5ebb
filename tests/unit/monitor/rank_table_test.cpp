#include "monitor/top/rank_table.h"

#include "catch.h"
#include "core/job/parse.h"
#include "monitor/top/one_moment.h"

namespace {

using namespace dshang;
using monitor::RankTable;

// Three ranks, ten seconds after the first record: 0 and 1 wait in a call that 2 has not made.
constexpr const char* kWaiting = R"(
rank 0 pid 100 world 3
comm world
visit step 1 at=1
call all_reduce 8 f32 sum at=1.2 site="train.py:14 backward"
visit step 2 at=2
visit phase_push forward at=2.1
call all_gather 64 bf16 at=2.2 site="model.py:9 forward" queued

rank 1 pid 101 world 3
comm world
visit step 1 at=1
call all_reduce 8 f32 sum at=1.2 site="train.py:14 backward"
visit step 2 at=2
visit phase_push forward at=2.1
call all_gather 64 bf16 at=2.3 site="model.py:9 forward" queued

rank 2 pid 102 world 3
comm world
visit step 1 at=1
call all_reduce 8 f32 sum at=1.2 site="train.py:14 backward"
visit step 2 at=2
)";

class Made {
 public:
  explicit Made(const char* text, double now) {
    job::Parsed parsed = job::parse(text, job_.names);
    REQUIRE(parsed.error == "");
    for (job::RankRecords& records : parsed.ranks) {
      auto process = std::make_unique<job::Process>();
      process->journal.pid = records.pid;
      if (job_.journal.start_ns == 0) job_.journal.start_ns = records.start_ns;
      process->records = std::move(records);
      job_.processes.push_back(std::move(process));
    }
    job_.journal.now_ns = job_.journal.start_ns + static_cast<std::uint64_t>(now * 1e9);
    job_.journal.dir = "out";
  }
  job::Process& process(std::size_t i) { return *job_.processes[i]; }
  job::Job& job() { return job_; }
  RankTable table() const { return monitor::rank_table_of(job::make_view(job_)); }

 private:
  job::Job job_;
};

bool holds(const std::string& line, const std::string& part) { return line.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a row says what a rank does and since when") {
  const RankTable table = Made(kWaiting, 10).table();
  REQUIRE(table.rows.size() == 3);
  CHECK_FALSE(table.ended);
  CHECK(table.rows[0].state == "waits");
  CHECK(table.rows[0].phase == "forward");
  CHECK(table.rows[0].step == 2);
  CHECK(table.rows[0].last_call == "all_gather 2 world");
  CHECK(table.rows[0].place == "model.py:9 forward");
  CHECK(table.rows[0].since == Approx(7.8));
  CHECK(table.rows[2].state == "on the host");
  CHECK(table.rows[2].last_call == "all_reduce 1 world");
}

TEST_CASE("a call of this moment is no wait") { CHECK(Made(kWaiting, 2.5).table().rows[0].state == "runs"); }

TEST_CASE("a rate falls while a step lasts") {
  const double soon = Made(kWaiting, 2.5).table().rows[0].steps_per_second;
  const double late = Made(kWaiting, 10).table().rows[0].steps_per_second;
  CHECK(soon == Approx(1));
  CHECK(late == Approx(1.0 / 8));
}

TEST_CASE("what a step takes is told in seconds, and how old the table is") {
  RankTable table = Made(kWaiting, 2.5).table();
  table.age = 2;
  const auto lines = monitor::lines_of(table, 120);
  CHECK(holds(lines[0], "up 0:00:02, 2 s ago"));
  CHECK(holds(lines[1], "s/step"));
  CHECK(holds(lines[2], "  1.00 "));
}

TEST_CASE("copies of different age are looked at as of the oldest") {
  constexpr const char* kUnequal = R"(
rank 0 pid 100 world 2
comm world
visit step 1 at=1
call all_reduce 8 f32 sum at=1.2
visit step 2 at=2
call all_reduce 8 f32 sum at=2.2
visit step 3 at=3
call all_reduce 8 f32 sum at=3.2

rank 1 pid 101 world 2
comm world
visit step 1 at=1
call all_reduce 8 f32 sum at=1.2
visit step 2 at=2
call all_reduce 8 f32 sum at=2.2 queued
)";
  Made made(kUnequal, 3.3);
  auto polled = [&](std::size_t i, double seconds) {
    job::RankRecords& records = made.process(i).records;
    records.poll_ns = records.start_ns + static_cast<std::uint64_t>(seconds * 1e9);
  };
  SECTION("that of rank 1 is older") {
    polled(0, 3.25), polled(1, 2.25);
    REQUIRE(monitor::take_one_moment(made.job()) != 0);
    RankTable table = made.table();
    CHECK(table.rows[0].step == 2);
    CHECK(table.rows[1].step == 2);
    CHECK(table.seconds < 2.5);
  }
  SECTION("a poller that is inside the driver holds nobody back") {
    polled(0, 20), polled(1, 2.25);
    monitor::take_one_moment(made.job());
    CHECK(made.table().rows[0].step == 3);
    CHECK(made.table().rows[1].step == 2);
  }
  SECTION("without a poller nothing is known of it") {
    CHECK(monitor::take_one_moment(made.job()) == 0);
    CHECK(made.table().rows[0].step == 3);
  }
}

TEST_CASE("an ended rank is told by its ending") {
  Made made(kWaiting, 10);
  made.process(1).journal.death = job::Death{0, job::EndingKnown::kStatus, true, 9};
  made.process(2).journal.death = job::Death{0, job::EndingKnown::kStatus, false, 1};
  const RankTable table = made.table();
  CHECK(table.rows[1].state == "signal 9");
  CHECK(table.rows[2].state == "ended 1");
  CHECK_FALSE(table.ended);
}

TEST_CASE("equal ranks share a row of the table") {
  const RankTable table = monitor::grouped(Made(kWaiting, 10).table());
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].ranks == std::vector<job::Rank>{0, 1});
  CHECK(table.rows[0].since == Approx(7.8));
  CHECK(table.rows[1].ranks == std::vector<job::Rank>{2});
}

TEST_CASE("memory is that of the device") {
  Made made(kWaiting, 10);
  auto& records = made.process(0).records;
  records.live[static_cast<unsigned>(flight::MemoryKind::kDevice)] = 1ull << 30;
  records.live[static_cast<unsigned>(flight::MemoryKind::kHost)] = 5ull << 30;
  records.peak[static_cast<unsigned>(flight::MemoryKind::kDevice)] = 3ull << 29;
  const auto lines = monitor::lines_of(made.table(), 120);
  CHECK(holds(lines[2], "1.00/1.50"));
}

TEST_CASE("no line is wider than asked for, and short names are whole") {
  for (std::size_t width : {60, 80, 200}) {
    for (const std::string& line : monitor::lines_of(Made(kWaiting, 10).table(), width))
      CHECK(line.size() <= width + 2);
  }
  const auto lines = monitor::lines_of(Made(kWaiting, 10).table(), 80);
  CHECK(holds(lines[0], "3 of 3 ranks, up 0:00:10"));
  CHECK(holds(lines[2], "all_gather 2 world"));
}

TEST_CASE("text is cut between characters") {
  CHECK(monitor::fitted("abc", 3) == "abc");
  CHECK(monitor::fitted("abcd", 3) == "ab…");
  CHECK(monitor::fitted("äöüß", 3) == "äö…");
  CHECK(monitor::fitted("abc", 0) == "");
}
