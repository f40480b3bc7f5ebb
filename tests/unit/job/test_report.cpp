#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "core/job/model.h"
#include "core/job/report.h"
#include "made.h"

using namespace dshang::job;

namespace {

Finding finding(const std::string& type, Severity severity, Certainty certainty = Certainty::kJudged) {
  Finding f;
  f.type = type;
  f.severity = severity;
  f.certainty = certainty;
  f.summary = "something";
  f.suspects = {1};
  f.waiting = {0};
  f.comm = "world";
  f.call = 4;
  return f;
}

std::unique_ptr<Job> two_ranks(double seconds) { return made(rank(0, 2, "") + rank(1, 2, ""), seconds); }

}  // namespace

TEST_CASE("a judged finding that is no longer found has ended, a proven one has not", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(5);
  history.update(*job, {{finding("host-stall", Severity::kInfo), finding("argument-mismatch", Severity::kHang, Certainty::kProven)}, {}, {}}, &news);
  CHECK(news);
  job->journal.now_ns += 2 * kSecondNs;
  Report report = history.update(*job, {}, &news);
  CHECK(news);
  REQUIRE(report.findings.size() == 2);
  CHECK_FALSE(report.findings[0].resolved);  // what still holds comes first
  CHECK(report.findings[1].resolved == 7.0);
  history.update(*job, {}, &news);
  CHECK_FALSE(news);
}

TEST_CASE("what is over does not begin with its severity; begin and time of finding are told apart", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(35);
  Finding stall = finding("host-stall", Severity::kHang);
  stall.at = 4;
  Report report = history.update(*job, {{stall}, {}, {}}, &news);
  CHECK(text_of(report).find("\nHANG [host-stall] something\n") != std::string::npos);
  CHECK(text_of(report).find("found at 35.0 s of the job, began at 4.0 s") != std::string::npos);
  job->journal.now_ns += 5 * kSecondNs;
  report = history.update(*job, {{stall}, {}, {}}, &news);
  CHECK(text_of(report).find("found at 35.0 s of the job, began at 4.0 s") != std::string::npos);
  CHECK(json_of(report).find("\"at\": 4.0") != std::string::npos);
  report = history.update(*job, {}, &news);
  CHECK(text_of(report).find("\nended: [host-stall] after 36.0 s: something\n") != std::string::npos);
  CHECK(text_of(report).find("HANG") == std::string::npos);
}

TEST_CASE("ranks that were ended while they waited did not get what they waited for", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(15);
  history.update(*job, {{finding("host-stall", Severity::kHang)}, {}, {}}, &news);
  job->processes[0]->journal.death = Death{job->journal.now_ns, EndingKnown::kStatus, true, 9};
  Report report = history.update(*job, {}, &news);
  REQUIRE(report.findings.size() == 1);
  CHECK_FALSE(report.findings[0].resolved);
  CHECK(verdict_of(report) == "hang");
}

TEST_CASE("a wait that ended is over although the ranks ended well at once", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(15);
  Finding stall = finding("host-stall", Severity::kHang);
  stall.suspects = {1};
  stall.waiting = {0};
  history.update(*job, {{stall}, {}, {}}, &news);
  for (auto& process : job->processes) process->journal.death = Death{job->journal.now_ns, EndingKnown::kStatus, false, 0};
  Report report = history.update(*job, {}, &news);
  CHECK(report.findings[0].resolved);
  CHECK(verdict_of(report) == "healthy");
}

TEST_CASE("endings after a first finding are its consequences", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(15);
  Finding cycle = finding("comm-order-cycle", Severity::kHang), dead = finding("rank-dead", Severity::kError);
  cycle.waiting = {0, 1};
  cycle.at = 1;
  dead.suspects = {1};
  dead.at = 14;
  history.update(*job, {{cycle}, {}, {}}, &news);
  job->processes[1]->journal.death = Death{job->journal.now_ns, EndingKnown::kStatus, true, 9};
  for (int look = 0; look < 2; ++look) {
    Report report = history.update(*job, {{dead}, {}, {}}, &news);
    REQUIRE(report.findings.size() == 2);
    CHECK(report.findings[0].type == "comm-order-cycle");
    CHECK(report.findings[1].consequence_of == std::size_t{0});
  }
}

TEST_CASE("what is kept of ranks that ended since still follows from its cause", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(3);
  Finding cause = finding("nan", Severity::kError, Certainty::kProven), parted = finding("early-return", Severity::kHang);
  cause.comm.reset();
  parted.consequence_of = 0;
  history.update(*job, {{cause, parted}, {}, {}}, &news);
  job->processes[1]->journal.death = Death{job->journal.now_ns, EndingKnown::kStatus, false, 1};
  job->journal.now_ns += kSecondNs;
  Report report = history.update(*job, {{finding("straggler", Severity::kInfo), cause}, {}, {}}, &news);
  auto at = [&](const char* type) {
    return std::find_if(report.findings.begin(), report.findings.end(), [&](const Finding& f) { return f.type == type; });
  };
  REQUIRE(at("early-return") != report.findings.end());
  REQUIRE(at("early-return")->consequence_of);
  CHECK(report.findings[*at("early-return")->consequence_of].type == "nan");
}

TEST_CASE("an ending that more ranks shared is the same finding told again", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(5);
  Finding dead = finding("rank-dead", Severity::kError);
  dead.suspects = {1};
  dead.at = 4;
  history.update(*job, {{dead}, {}, {}}, &news);
  dead.suspects = {0, 1};
  dead.at = 4.5;
  job->journal.now_ns += kSecondNs;
  Report report = history.update(*job, {{dead}, {}, {}}, &news);
  CHECK(news);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].suspects == std::vector<Rank>{0, 1});
  CHECK(report.findings[0].at == 4.0);
  dead.suspects = {2};
  CHECK(history.update(*job, {{dead}, {}, {}}, &news).findings.size() == 2);
}

TEST_CASE("a judged state that some ranks have left is the same one and no news, one that more ranks share is", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(5);
  Finding tight = finding("memory-pressure", Severity::kWarning);
  tight.subject = "steps";
  for (auto [suspects, is_news] : {std::pair{std::vector<Rank>{0, 1, 2}, true}, {{0, 2}, false}, {{0, 2, 3}, true}}) {
    tight.suspects = suspects;
    job->journal.now_ns += kSecondNs;
    Report report = history.update(*job, {{tight}, {}, {}}, &news);
    CHECK(news == is_news);
    REQUIRE(report.findings.size() == 1);
    CHECK(report.findings[0].suspects == suspects);
    CHECK_FALSE(report.findings[0].resolved);
  }
}

TEST_CASE("many ranks are told by the first of them", "[report]") {
  std::vector<Rank> even, neighbours;
  for (Rank rank = 0; rank < 1024; ++rank) {
    if (rank % 2 == 0) even.push_back(rank);
    if (rank != 500) neighbours.push_back(rank);
  }
  CHECK(ranks_text(even) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 500 more");
  CHECK(ranks_text(neighbours) == "ranks 0-499, 501-1023");
  CHECK(list_of(even).size() > 1000);  // where all of them are wanted
  even.resize(16);
  CHECK(ranks_text(even) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30");
  Report report;
  report.findings = {finding("argument-mismatch", Severity::kHang)};
  report.findings[0].suspects = neighbours;
  CHECK(text_of(report).find("suspected: ranks 0-499, 501-1023\n") != std::string::npos);
}

TEST_CASE("nobody is interrupted after a hang was found", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(15);
  history.update(*job, {{finding("host-stall", Severity::kHang)}, {}, {}}, &news);
  job->processes[1]->journal.death = Death{job->journal.now_ns, EndingKnown::kStatus, true, 15};
  Finding follows = finding("early-return", Severity::kError);
  follows.consequence_of = 0;
  Report report = history.update(*job, {{finding("interrupted", Severity::kInfo), follows}, {}, {}}, &news);
  REQUIRE(report.findings.size() == 2);
  for (const Finding& f : report.findings) CHECK(f.type != "interrupted");
}

TEST_CASE("an interruption that turns out to be a hang is told as that alone", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(15);
  job->processes[1]->journal.death = Death{job->journal.now_ns, EndingKnown::kStatus, true, 2};
  Finding interrupted = finding("interrupted", Severity::kInfo), dead = finding("rank-dead", Severity::kHang);
  interrupted.certainty = dead.certainty = Certainty::kProven;
  CHECK(history.update(*job, {{interrupted}, {}, {}}, &news).findings.size() == 1);
  Report report = history.update(*job, {{dead}, {}, {}}, &news);
  CHECK(news);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].type == "rank-dead");
  report = history.update(*job, {{interrupted}, {}, {}}, &news);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].type == "rank-dead");
}

TEST_CASE("what was over when it was found is in the report and gets no block", "[report]") {
  FindingHistory history;
  bool news = true;
  auto job = two_ranks(15);
  Finding over = finding("alloc-failed", Severity::kError);
  over.resolved = 12;
  Report report = history.update(*job, {{over}, {}, {}}, &news);
  CHECK_FALSE(news);
  CHECK(report.findings.size() == 1);
  CHECK(verdict_of(report) == "healthy");
}

TEST_CASE("an ending that came first stays the cause", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(15);
  Finding dead = finding("rank-dead", Severity::kError);
  dead.suspects = {1};
  dead.at = 14;
  job->processes[1]->journal.death = Death{job->journal.now_ns, EndingKnown::kStatus, true, 9};
  history.update(*job, {{dead}, {}, {}}, &news);
  Report report = history.update(*job, {{dead, finding("unknown-hang", Severity::kHang)}, {}, {}}, &news);
  CHECK_FALSE(report.findings[0].consequence_of);
  CHECK_FALSE(report.findings[1].consequence_of);
}

TEST_CASE("a better explanation replaces the first one and keeps its time", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(5);
  Finding first = finding("order-differs", Severity::kHang), second = finding("module-skipped", Severity::kHang);
  first.at = 4;
  second.at = 4.5;
  history.update(*job, {{first}, {}, {}}, &news);
  Report report = history.update(*job, {{second}, {}, {}}, &news);
  CHECK(news);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].type == "module-skipped");
  CHECK(report.findings[0].at == 4.0);
}

TEST_CASE("the block tells news whole and the headline of what was told before", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(5);
  Finding lengths = finding("data-differs", Severity::kWarning, Certainty::kProven), hang = finding("uneven-steps", Severity::kHang);
  lengths.subject = "length";
  lengths.suspects = {};
  lengths.evidence = {"the evidence"};
  Report report = history.update(*job, {{lengths}, {}, {}}, &news);
  CHECK(block_of(report).find("dshang: WARNING [data-differs] something\ndshang:   - the evidence\n") == 0);
  lengths.suspects = {1};  // a third rank came: now it is clear who
  report = history.update(*job, {{lengths}, {}, {}}, &news);
  CHECK(report.findings.size() == 1);
  CHECK(block_of(report).find("the evidence") != std::string::npos);
  report = history.update(*job, {{hang, lengths}, {}, {}}, &news);
  std::string block = block_of(report);
  CHECK(block.find("dshang: HANG [uneven-steps]") == 0);
  CHECK(block.find("\ndshang: still: WARNING [data-differs] something\n") != std::string::npos);
  CHECK(block.find("the evidence") == std::string::npos);
  CHECK(text_of(report).find("the evidence") != std::string::npos);
  report = history.update(*job, {{hang, lengths}, {}, {}}, &news);
  CHECK_FALSE(news);
  CHECK(block_of(report).find("still: HANG") != std::string::npos);
}

TEST_CASE("two findings of a class that speak of different things are two", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(5);
  Finding lengths = finding("data-differs", Severity::kWarning), content = lengths;
  lengths.subject = "length";
  content.subject = "content";
  history.update(*job, {{lengths}, {}, {}}, &news);
  Report report = history.update(*job, {{lengths, content}, {}, {}}, &news);
  CHECK(news);
  CHECK(report.findings.size() == 2);
}

TEST_CASE("what happens a second time is told again, with its own time", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(5);
  Finding stall = finding("host-stall", Severity::kHang);
  stall.at = 4;
  history.update(*job, {{stall}, {}, {}}, &news);
  job->journal.now_ns += 2 * kSecondNs;
  history.update(*job, {}, &news);
  history.update(*job, {{stall}, {}, {}}, &news);
  CHECK_FALSE(news);  // the same one
  history.update(*job, {}, &news);
  job->journal.now_ns += 20 * kSecondNs;
  stall.at = 15;
  Report report = history.update(*job, {{stall}, {}, {}}, &news);
  CHECK(news);
  CHECK(report.findings[0].at == 15);
  CHECK(report.findings[0].found == 27);
}

TEST_CASE("ranks that are ended while they hang do not take the place of what was found", "[report]") {
  FindingHistory history;
  bool news = false;
  auto job = two_ranks(15);
  Finding skipped = finding("module-skipped", Severity::kHang, Certainty::kProven), dead = finding("rank-dead", Severity::kHang);
  skipped.waiting = dead.waiting = {0, 1};
  skipped.comm = dead.comm = "world";
  skipped.call = dead.call = 7;
  skipped.at = dead.at = 4;
  history.update(*job, {{skipped}, {}, {}}, &news);
  for (auto& process : job->processes) process->journal.death = Death{job->journal.now_ns, EndingKnown::kStatus, true, 2};
  Report report = history.update(*job, {{dead}, {}, {}}, &news);
  REQUIRE(report.findings.size() == 2);
  CHECK(std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& f) { return f.type == "module-skipped"; }));
}

TEST_CASE("the verdict is the worst that has not ended", "[report]") {
  Report report;
  CHECK(verdict_of(report) == "healthy");
  report.findings = {finding("host-stall", Severity::kInfo)};
  CHECK(verdict_of(report) == "healthy");
  report.not_checked = {"2 of 4 ranks were not heard from"};
  CHECK(verdict_of(report) == "undecided");
  report.findings.push_back(finding("host-stall", Severity::kWarning));
  CHECK(verdict_of(report) == "warning");
  report.findings.push_back(finding("rank-dead", Severity::kHang));
  CHECK(verdict_of(report) == "hang");
  report.findings.back().resolved = 3;
  CHECK(verdict_of(report) == "warning");
}

TEST_CASE("the block fits one write and 25 lines however much there is to say", "[report]") {
  Report report;
  report.dir = "/somewhere";
  for (int i = 0; i < 20; ++i) {
    report.findings.push_back(finding("rank-dead", Severity::kHang));
    report.findings.back().is_news = true;
    report.findings.back().evidence.assign(30, std::string(3000, 'x'));
  }
  std::string block = block_of(report);
  CHECK(block.size() <= 4096);
  CHECK(std::count(block.begin(), block.end(), '\n') <= 25);
  CHECK(block.find("dshang: HANG [rank-dead] something\n") == 0);
  CHECK(block.find("/somewhere/report.txt\n") != block.npos);
  CHECK(block_of(Report{}).empty());
}

TEST_CASE("names that are no UTF-8 do not cost the report", "[report]") {
  Report report;
  report.findings = {finding("rank-dead", Severity::kHang)};
  report.findings[0].summary = "bad \xff name";
  CHECK(json_of(report).find("bad ") != std::string::npos);
}

TEST_CASE("the journal is read back as it was written, a cut last line is left out", "[journal]") {
  Journal journal;
  journal.start_ns = 5;
  journal.host = "a";
  journal.dir = "/d";
  journal.parameters = {"DSHANG_STALL_AFTER=7"};
  ProcessJournal process;
  process.pid = 12;
  process.pid_start_ticks = 34;
  process.attach_ns = 6;
  process.death = Death{9, EndingKnown::kRecord, true, 15};
  HostSample sample;
  sample.time_ns = 8;
  sample.cpu_seconds = 1.5;
  sample.wchan = "futex_wait_queue";
  std::string text = line_of_start(journal) + line_of_attach(process) + line_of_sample(process, sample) + line_of_death(process) +
                     line_of_time(10);
  std::istringstream in(text + R"({"news":"dea)");
  Journal read = read_journal(in);
  CHECK(read.now_ns == 10);
  CHECK(params_from(read.parameters).stall_after == 7);
  REQUIRE(read.processes.size() == 1);
  CHECK(read.processes[0].death->code == 15);
  CHECK(read.processes[0].death->known == EndingKnown::kRecord);
  REQUIRE(read.processes[0].samples.size() == 1);
  CHECK(read.processes[0].samples[0].cpu_seconds == 1.5);
  CHECK_FALSE(read.processes[0].samples[0].read_bytes);
  std::istringstream broken("{\"news\":\"time\"}\n{}\n");
  std::string said;
  try {
    read_journal(broken);
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  CHECK(said.find("line 1: ") == 0);
}
