#include "monitor/metrics/page.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "core/flight/format.h"
#include "core/job/device_memory.h"
#include "core/job/printable.h"
#include "core/job/version.h"
#include "monitor/rate.h"

namespace dshang::monitor {
namespace {

using job::Process;

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string label(const char* name, const std::string& value) {
  std::string text = std::string(name) + "=\"";
  for (char c : job::printable(value)) {  // Prometheus refuses a page that is not UTF-8
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? "\\n" : std::string(1, c);
  }
  return text + '"';
}

// One metric family: its head, then a line a sample.
class Family {
 public:
  Family(std::string name, const char* type, const char* help) : name_(std::move(name)) {
    text_ = "# TYPE " + name_ + " " + type + "\n# HELP " + name_ + " " + help + "\n";
    if (std::string(type) == "counter") suffix_ = "_total";
    if (std::string(type) == "info") suffix_ = "_info";
  }
  void add(const std::string& labels, double value) {
    text_ += name_ + suffix_ + (labels.empty() ? "" : "{" + labels + "}") + " " + number(value) + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_, suffix_, text_;
};

// When its last call or step began; 0 = there was none.
std::uint64_t last_progress_ns(const job::RankRecords& records) {
  std::uint64_t newest = 0;
  if (!records.calls.empty()) newest = records.calls.at(records.calls.end() - 1).enter_ns;
  if (!records.visits.empty()) newest = std::max(newest, records.visits.at(records.visits.end() - 1).time_ns);
  return newest;
}

// Seconds since 1970 of a moment on the rank's own clock.
double unix_seconds(const job::RankRecords& records, std::uint64_t ns) {
  return (static_cast<double>(records.start_real_ns) + static_cast<double>(ns) -
          static_cast<double>(records.start_ns)) /
         1e9;
}

// The processes that are ranks, the newest of each, by rank.
std::map<std::int32_t, const Process*> ranks_of(const job::Job& job) {
  std::map<std::int32_t, const Process*> ranks;
  for (const auto& process : job.processes) {
    const job::RankRecords& records = process->records;
    const std::int32_t rank =
        records.world_rank ? static_cast<std::int32_t>(records.world_rank) - 1 : records.rank;
    const Process*& at = ranks[rank];
    if (rank >= 0 && (!at || at->journal.death || records.world_rank)) at = process.get();
  }
  ranks.erase(-1);
  return ranks;
}

std::string of_ranks(const std::map<std::int32_t, const Process*>& ranks, std::uint64_t now_ns) {
  Family alive("dshang_rank_alive", "gauge", "1 while the process of the rank lives, else 0.");
  Family step("dshang_step", "gauge", "Newest training step that the rank has begun.");
  Family rate("dshang_steps_per_second", "gauge", "Training steps a second, over the last ones.");
  Family calls("dshang_calls", "counter", "NCCL calls of the rank.");
  Family progress("dshang_last_progress_timestamp_seconds", "gauge",
                  "When the rank last began a call or a step.");
  Family live("dshang_device_bytes", "gauge",
              "Device memory that the process has allocated, as the CUDA calls were seen.");
  Family peak("dshang_device_peak_bytes", "gauge", "The most of it in the step that runs.");
  Family failures("dshang_allocation_failures", "counter",
                  "Device allocations that failed, those tried again included.");
  for (const auto& [rank, process] : ranks) {
    const job::RankRecords& records = process->records;
    const std::string labels = label("rank", std::to_string(rank));
    alive.add(labels, process->journal.death ? 0 : 1);
    if (records.step != job::kNoStep) step.add(labels, static_cast<double>(records.step));
    if (const double per_second = steps_per_second(records, now_ns); per_second >= 0)
      rate.add(labels, per_second);
    calls.add(labels, static_cast<double>(records.calls.end()));
    if (const std::uint64_t last = last_progress_ns(records))
      progress.add(labels, unix_seconds(records, last));
    live.add(labels, static_cast<double>(job::on_device(records.live)));
    peak.add(labels, static_cast<double>(job::on_device(records.peak)));
    failures.add(labels, static_cast<double>(records.failures));
  }
  std::string text;
  for (const Family* family : {&alive, &step, &rate, &calls, &progress, &live, &peak, &failures})
    text += family->text();
  return text;
}

std::string of_findings(const job::Report& report) {
  std::map<std::pair<std::string, std::string>, unsigned> open;
  for (const job::Finding& finding : report.findings) {
    if (!finding.resolved) ++open[{finding.type, job::text_of(finding.severity)}];
  }
  Family findings("dshang_findings", "gauge", "Findings that are not resolved.");
  for (const auto& [what, count] : open) {
    findings.add(label("class", what.first) + "," + label("severity", what.second), count);
  }
  Family verdict("dshang_verdict", "stateset", "The state of the job, as in report.json.");
  const std::string now = job::verdict_of(report);
  for (const char* one : {"hang", "error", "warning", "healthy", "undecided"}) {
    verdict.add(label("dshang_verdict", one), one == now ? 1 : 0);
  }
  return findings.text() + verdict.text();
}

}  // namespace

std::string metrics_of(const job::Job& job, const job::Report& report) {
  Family about("dshang_job", "info", "The job that is watched.");
  about.add(label("version", job::kVersion) + "," + label("host", job.journal.host) + "," +
                label("directory", job.journal.dir) + "," +
                label("attempt", std::to_string(job.journal.attempt)),
            1);
  Family world("dshang_world_size", "gauge", "Ranks of the whole job.");
  if (report.world_size > 0) world.add("", report.world_size);
  return about.text() + world.text() + of_ranks(ranks_of(job), job.journal.now_ns) + of_findings(report) +
         "# EOF\n";
}

}  // namespace dshang::monitor
