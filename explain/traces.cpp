#include "explain/traces.h"

#include <algorithm>

#include "core/job/printable.h"

namespace dshang::explain {
namespace {

constexpr std::size_t kMostTraces = 1000;
constexpr std::size_t kMostFrames = 40;
constexpr std::size_t kMostOpen = 4096;   // ranks
constexpr std::uint64_t kLongest = 2000;  // lines from its beginning, others' included
constexpr std::uint64_t kBehind = 10;     // lines of a message that belong to the traceback above
constexpr std::size_t kLongestText = 400;

constexpr std::string_view kHead = "Traceback (most recent call last)";

bool is_frame(std::string_view text) { return text.starts_with("  File \""); }

// Errors that say only that another process has failed.
bool secondary(std::string_view error) {
  for (std::string_view word :
       {"ChildFailedError", "CalledProcessError", "KeyboardInterrupt", "SignalException", "SystemExit"}) {
    if (error.substr(0, error.find(':')).find(word) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

void Traces::take(const Line& line) {
  if (line.text.starts_with("Exception ignored in")) ignored_[line.who] = line.place;
  auto open = open_.find(line.who);
  bool begins = line.text.find(kHead) != std::string_view::npos;
  if (open == open_.end()) {
    auto latest = latest_.find(line.who);
    if (latest != latest_.end() && line.text.find("he above exception") != std::string_view::npos)
      chained_[line.who] = latest->second;
    if ((!begins && !is_frame(line.text)) || open_.size() >= kMostOpen) return;
    Trace trace{line.who, line.place, line.place, {}, "", false, false};
    auto ignored = ignored_.find(line.who);
    trace.ignored = ignored != ignored_.end() && line.place.line - ignored->second.line <= 1;
    open = open_.emplace(line.who, std::move(trace)).first;
  }
  Trace& trace = open->second;
  if (is_frame(line.text)) {
    trace.frames.push_back(job::printable(line.text.substr(2, kLongestText)));
    if (trace.frames.size() > kMostFrames) trace.frames.erase(trace.frames.begin() + 1);
  }
  bool inside = line.text.empty() || line.text[0] == ' ' || line.text[0] == '\t' || begins;
  if (inside && line.place.line - trace.first.line < kLongest) return;
  Trace ended = std::move(trace);
  open_.erase(open);
  if (!inside) close(std::move(ended), line);
}

void Traces::close(Trace trace, const Line& line) {
  trace.last = line.place;
  trace.error = job::printable(line.text.substr(0, kLongestText));
  if (all_.size() >= kMostTraces) return;
  auto chained = chained_.find(line.who);
  if (chained != chained_.end()) {
    // One failure: known when any of its parts is; the first is the cause.
    trace.known = trace.known || all_[chained->second].known;
    all_[chained->second].known = all_[chained->second].known || trace.known;
    all_[chained->second].last = trace.last;
    latest_[line.who] = chained->second;
    chained_.erase(chained);
    return;
  }
  latest_[line.who] = all_.size();
  all_.push_back(std::move(trace));
}

void Traces::end() {
  open_.clear();
  latest_.clear();
  chained_.clear();
  ignored_.clear();
}

Trace* Traces::around(const Line& line) {
  auto open = open_.find(line.who);
  if (open != open_.end()) return &open->second;
  auto latest = latest_.find(line.who);
  if (latest == latest_.end()) return nullptr;
  Trace& trace = all_[latest->second];
  bool near = trace.last.file == line.place.file && line.place.line - trace.last.line <= kBehind;
  return near ? &trace : nullptr;
}

std::string Traces::frames_above(const Line& line) {
  std::string text;
  if (const Trace* trace = around(line)) {
    for (const std::string& frame : trace->frames) text += frame + "\n";
  }
  return text;
}

void Traces::mark_known(const Line& line) {
  if (Trace* trace = around(line)) trace->known = true;
}

const Trace* Traces::first_unknown() const {
  const Trace* first = nullptr;
  for (const Trace& trace : all_) {
    if (trace.known || trace.ignored || secondary(trace.error)) continue;
    if (!first || trace.last < first->last) first = &trace;
  }
  return first;
}

std::vector<Traces::Unknown> Traces::unknown(std::size_t most) const {
  std::vector<Unknown> all;
  const Trace* first = first_unknown();
  if (!first) return all;
  auto put = [&](const Trace& trace) {
    for (Unknown& one : all) {
      if (!one.first->same(trace)) continue;
      one.speakers.insert(trace.who);
      ++one.count;
      return;
    }
    if (all.size() < most) all.push_back({&trace, {trace.who}, 1});
  };
  put(*first);
  for (const Trace& trace : all_) {
    if (!trace.known && !trace.ignored && &trace != first && !(trace.last < first->last)) put(trace);
  }
  return all;
}

}  // namespace dshang::explain
