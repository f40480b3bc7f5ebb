#include "explain/watchdog.h"

#include <algorithm>

#include "core/job/printable.h"

namespace dshang::explain {
namespace {

constexpr std::size_t kMostReports = 10000;

// The text behind `word`, up to one of `ends`.
std::string behind(std::string_view text, std::string_view word, std::string_view ends) {
  std::size_t at = text.find(word);
  if (at == std::string_view::npos) return "";
  std::string_view rest = text.substr(at + word.size());
  return job::printable(rest.substr(0, std::min(rest.find_first_of(ends), std::size_t{80})));
}

long number_behind(std::string_view text, std::string_view word) {
  std::size_t at = text.find(word);
  if (at == std::string_view::npos) return -1;
  at += word.size();
  return read_number(text, &at);
}

// "[Rank 2]", and "Rank 2]" of a process group's prefix.
int rank_of(const Line& line, std::size_t at) {
  if (line.who.rank >= 0 && !line.who.local) return line.who.rank;
  std::string_view head = line.text.substr(0, at);
  std::size_t word = head.rfind("Rank ");
  return word == std::string_view::npos ? line.who.rank
                                        : static_cast<int>(number_behind(head.substr(word), "Rank "));
}

// "[E1130 13:04:41.495 ProcessGroupNCCL.cpp:741]": seconds of the day, -1 unknown.
long time_of(std::string_view head) {
  std::size_t at = head.find("[E");
  if (at == std::string_view::npos) return -1;
  at += 2;
  if (read_number(head, &at) < 0 || at >= head.size()) return -1;
  long time = 0;
  for (int part = 0; part < 3; ++part) {
    long number = read_number(head, &++at);
    if (number < 0) return -1;
    time = 60 * time + number;
  }
  return time;
}

bool came_late(const Watchdog::Report& first, const Watchdog::Report& report) {
  constexpr long kDay = 86400, kTolerance = 10;  // percent
  if (first.time_s < 0 || report.time_s < 0 || first.timeout_ms <= 0) return false;
  long later = (report.time_s - first.time_s + kDay) % kDay;
  return later < kDay / 2 && later * 1000 * 100 >= first.timeout_ms * (100 - kTolerance);
}

}  // namespace

std::string Watchdog::Call::text() const {
  return op + " #" + std::to_string(seq) + (size.empty() ? "" : " (" + size + ")");
}

void Watchdog::take_timeout(const Line& line, std::size_t at) {
  std::string_view text = line.text.substr(at);
  Report report;
  report.place = line.place;
  report.rank = rank_of(line, at);
  report.time_s = time_of(line.text.substr(0, at));
  report.group = behind(line.text.substr(0, at), "PG GUID ", " ");  // torch 2.14
  report.call.seq = number_behind(text, "SeqNum=");
  report.call.op = behind(text, "OpType=", ",) ");
  report.timeout_ms = number_behind(text, "Timeout(ms)=");
  long in = number_behind(text, "NumelIn="), out = number_behind(text, "NumelOut=");
  // Older versions print TensorShape=[1, 2].
  report.call.size =
      in >= 0 ? std::to_string(in) + " -> " + std::to_string(out) : behind(text, "TensorShape=", "]");
  if (in < 0 && !report.call.size.empty()) report.call.size += "]";
  if (report.call.seq < 0 || reports_.size() >= kMostReports) return;
  reports_.push_back(report);
}

void Watchdog::take_group(const Line& line, std::size_t at) {
  int rank = rank_of(line, at);
  // "at work sequence id: 5 PG status: last enqueued work: 6, …" of torch 2.14, "at work: 808, last enqueued
  // …" before.
  long work = number_behind(line.text, " work sequence id: ");
  bool newer = work >= 0;
  if (!newer) work = number_behind(line.text, " work: ");
  for (auto report = reports_.rbegin(); report != reports_.rend(); ++report) {
    if (report->rank != rank || report->call.seq != work) continue;
    std::string group = behind(line.text, "PG GUID ", " ");
    if (group.empty()) group = behind(line.text, "[PG ", " ");
    if (report->group.empty()) report->group = group;
    report->enqueued = number_behind(line.text, newer ? "last enqueued work: " : "last enqueued NCCL work: ");
    report->completed =
        number_behind(line.text, newer ? "last completed work: " : "last completed NCCL work: ");
    return;
  }
}

std::vector<Watchdog::Side> Watchdog::sides() const {
  std::map<Call, std::vector<int>> by_call;
  std::vector<int> counted;
  const std::string group = reports_.empty() ? "" : reports_.front().group;
  for (const Report& report : reports_) {
    bool other_group = !report.group.empty() && !group.empty() && report.group != group;
    if (came_late(reports_.front(), report)) continue;
    if (other_group || std::count(counted.begin(), counted.end(), report.rank)) continue;
    counted.push_back(report.rank);
    by_call[report.call].push_back(report.rank);
  }
  std::vector<Side> sides;
  for (auto& [call, ranks] : by_call) {
    std::sort(ranks.begin(), ranks.end());
    sides.push_back({call, ranks});
  }
  std::stable_sort(sides.begin(), sides.end(),
                   [](const Side& a, const Side& b) { return a.ranks.size() > b.ranks.size(); });
  return sides;
}

bool Watchdog::whole_job() const {
  const std::string& group = reports_.front().group;
  return group.empty() || group == "0" || group.find("default_pg") != std::string::npos;
}

}  // namespace dshang::explain
