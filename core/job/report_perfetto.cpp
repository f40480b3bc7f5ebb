#include "core/job/report_perfetto.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/job/classes.h"
#include "core/job/trace_file.h"

namespace dshang::job {
namespace {

using flight::kUnknownBytes;
using flight::VisitKind;

// Slices that overlap, spread over tracks of one name.
class Lanes {
 public:
  Lanes(TraceFile& file, TrackId parent, std::string name)
      : file_(file), parent_(parent), name_(std::move(name)) {}

  TrackId lane_for(std::uint64_t begin, std::uint64_t end) {
    auto free = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return l.until <= begin; });
    if (free == lanes_.end()) free = lanes_.insert(free, {file_.track(parent_, name_), 0});
    free->until = end;
    return free->track;
  }

 private:
  struct Lane {
    TrackId track;
    std::uint64_t until;
  };
  TraceFile& file_;
  TrackId parent_;
  std::string name_;
  std::vector<Lane> lanes_;
};

class RankTrace {
 public:
  RankTrace(const JobView& view, const RankView& rank, TraceFile& file, TrackId process)
      : view_(view), rank_(rank), file_(file), process_(process) {
    until_ns_ = rank.alive() ? view.now_ns() : rank.journal().death->time_ns;
  }
  void calls(std::uint64_t from);
  void visits(std::uint64_t from);
  void memory();
  void instants();

 private:
  const std::string& text(NameId name) const { return view_.names().text(name); }
  std::string place(SiteId site) const { return view_.names().place_text(view_.names().place_of(site)); }
  std::uint64_t at(std::uint64_t ns) const {
    std::uint64_t start = view_.job->journal.start_ns;
    return ns > start ? ns - start : 0;
  }
  TraceArguments arguments_of(const Call& call, const std::string& comm) const;
  void steps(std::uint64_t from);
  void nested(std::uint64_t from, VisitKind enter, VisitKind leave, const char* name);

  const JobView& view_;
  const RankView& rank_;
  TraceFile& file_;
  TrackId process_;
  std::uint64_t until_ns_;  // when the rank ended, or now
};

const char* state_text(const RankView& rank, const Call& call) {
  if (call.flags & flight::kCallFailed) return "failed";
  if (is_done(call)) return "done";
  if (is_held_back(call)) return "in an open group";
  return waits_in(rank, call) ? "waits" : "returned";
}

TraceArguments RankTrace::arguments_of(const Call& call, const std::string& comm) const {
  TraceArguments arguments;
  arguments.add("communicator", comm)
      .add("call", static_cast<std::int64_t>(call.number))
      .add("state", state_text(rank_, call))
      .add("count", static_cast<std::int64_t>(call.count));
  if (const char* dtype = text_of(call.dtype)) arguments.add("dtype", dtype);
  if (const char* reduce_op = text_of(call.reduce_op)) arguments.add("reduce_op", reduce_op);
  bool pointed = view_.op_traits(rank_, call) & (flight::kOpSend | flight::kOpRecv);
  if (call.root_or_peer >= 0) arguments.add(pointed ? "peer" : "root", call.root_or_peer);
  if (call.step != kNoStep) arguments.add("step", call.step);
  arguments.add("phase", text(call.phase)).add("module", text(call.module)).add("site", place(call.site));
  auto after = [&](const char* name, std::uint64_t ns) {
    if (ns >= call.enter_ns && ns != 0) arguments.add(name, static_cast<std::int64_t>(ns - call.enter_ns));
  };
  after("returned after ns", call.return_ns);
  after("started after ns", call.started_ns);
  return arguments;
}

void RankTrace::calls(std::uint64_t from) {
  std::map<std::uint32_t, Lanes> by_comm;
  const auto& calls = rank_.records().calls;
  const auto& comms = rank_.records().comms;
  for (std::uint64_t n = from; n < calls.end(); ++n) {
    const Call& call = calls.at(n);
    if (call.torn || call.enter_ns == 0) continue;
    const CommView* comm = call.comm < comms.size() ? view_.by_id(comms[call.comm].id) : nullptr;
    std::string name = comm ? comm->name : "unknown communicator";
    Lanes& lanes = by_comm.try_emplace(call.comm, file_, process_, "calls of " + name).first->second;
    std::uint64_t end = is_done(call) ? call.done_ns : is_outstanding(call) ? until_ns_ : call.return_ns;
    end = std::max(end, call.enter_ns);
    TrackId lane = lanes.lane_for(call.enter_ns, end);
    file_.begin(lane, at(call.enter_ns), view_.op_name(rank_, call), arguments_of(call, name));
    file_.end(lane, at(end));
  }
}

void RankTrace::steps(std::uint64_t from) {
  const auto& visits = rank_.records().visits;
  TrackId track = 0;
  for (std::uint64_t n = from; n < visits.end(); ++n) {
    const Visit& visit = visits.at(n);
    if (visit.torn || visit.kind != VisitKind::kStep) continue;
    if (track) {
      file_.end(track, at(visit.time_ns));
    } else {
      track = file_.track(process_, "steps");
    }
    file_.begin(track, at(visit.time_ns), "step " + std::to_string(visit.step),
                TraceArguments().add("step", visit.step));
  }
  if (track) file_.end(track, at(until_ns_));
}

// Phases or modules of each thread: what is left without having been entered is passed over, what is not left
// ends with the records.
void RankTrace::nested(std::uint64_t from, VisitKind enter, VisitKind leave, const char* name) {
  struct Open {
    TrackId track;
    std::size_t depth;
  };
  std::map<std::uint16_t, Open> threads;
  const auto& visits = rank_.records().visits;
  for (std::uint64_t n = from; n < visits.end(); ++n) {
    const Visit& visit = visits.at(n);
    if (visit.torn || (visit.kind != enter && visit.kind != leave)) continue;
    auto found = threads.find(visit.thread);
    if (visit.kind == enter) {
      if (found == threads.end())
        found = threads.emplace(visit.thread, Open{file_.track(process_, name), 0}).first;
      ++found->second.depth;
      TraceArguments arguments;
      if (visit.step != kNoStep) arguments.add("step", visit.step);
      if (enter == VisitKind::kModuleEnter) arguments.add("phase", text(visit.phase));
      arguments.add("site", place(visit.site));
      const std::string& label = text(enter == VisitKind::kModuleEnter ? visit.module : visit.phase);
      file_.begin(found->second.track, at(visit.time_ns), label.empty() ? "(unnamed)" : label, arguments);
    } else if (found != threads.end() && found->second.depth > 0) {
      --found->second.depth;
      file_.end(found->second.track, at(visit.time_ns));
    }
  }
  for (auto& [thread, open] : threads) {
    for (; open.depth > 0; --open.depth) file_.end(open.track, at(until_ns_));
  }
}

void RankTrace::visits(std::uint64_t from) {
  steps(from);
  nested(from, VisitKind::kPhasePush, VisitKind::kPhasePop, "phases");
  nested(from, VisitKind::kModuleEnter, VisitKind::kModuleExit, "modules");
}

void RankTrace::memory() {
  using flight::MemoryKind;
  const auto& steps = rank_.records().memory_steps;
  auto counter = [&](const char* name, auto value_of) {
    TrackId track = 0;
    for (std::uint64_t n = steps.first(); n < steps.end(); ++n) {
      if (steps.at(n).time_ns == 0) continue;
      std::uint64_t value = value_of(steps.at(n));
      if (value == kUnknownBytes || (value == 0 && !track)) continue;
      if (!track) track = file_.counter_of_bytes(process_, name);
      file_.count(track, at(steps.at(n).time_ns), value);
    }
  };
  auto held = [](const MemoryStep& step, MemoryKind kind) { return step.live[static_cast<unsigned>(kind)]; };
  counter("allocated by torch, peak of the step", [](const MemoryStep& step) { return step.allocated_peak; });
  counter("reserved by torch, peak of the step", [](const MemoryStep& step) { return step.reserved_peak; });
  counter("device memory held", [&](const MemoryStep& step) {
    return held(step, MemoryKind::kDevice) + held(step, MemoryKind::kManaged) +
           held(step, MemoryKind::kPool) + held(step, MemoryKind::kVirtual);
  });
  counter("pinned host memory held", [&](const MemoryStep& step) {
    return held(step, MemoryKind::kHost) + held(step, MemoryKind::kRegistered);
  });
}

void RankTrace::instants() {
  const RankRecords& records = rank_.records();
  for (std::uint64_t n = records.alloc_failures.first(); n < records.alloc_failures.end(); ++n) {
    const AllocFailure& failure = records.alloc_failures.at(n);
    if (failure.time_ns == 0) continue;
    file_.instant(process_, at(failure.time_ns), "allocation failed",
                  TraceArguments()
                      .add("bytes", static_cast<std::int64_t>(failure.size))
                      .add("site", place(failure.site)));
  }
  for (std::uint64_t n = records.exceptions.first(); n < records.exceptions.end(); ++n) {
    const Exception& raised = records.exceptions.at(n);
    if (raised.time_ns == 0) continue;
    file_.instant(process_, at(raised.time_ns), text(raised.type),
                  TraceArguments().add("message", text(raised.message)).add("site", place(raised.site)));
  }
  if (!rank_.alive())
    file_.instant(process_, at(until_ns_), "ended: " + ending_text(rank_), TraceArguments());
}

// Arguments of one name would hide each other.
void add_lines(const std::string& name, const std::vector<std::string>& lines, TraceArguments& arguments) {
  for (std::size_t i = 0; i < lines.size(); ++i) arguments.add(name + " " + std::to_string(i + 1), lines[i]);
}

void trace_findings(const Report& report, TraceFile& file) {
  if (report.findings.empty()) return;
  TrackId track = file.track(0, "what was found");
  for (const Finding& f : report.findings) {
    TraceArguments arguments;
    arguments.add("severity", text_of(f.severity)).add("class", f.type).add("suspects", list_of(f.suspects));
    add_lines("evidence", f.evidence, arguments);
    add_lines("fix", f.fix, arguments);
    file.instant(track, static_cast<std::uint64_t>(std::max(0.0, f.at) * 1e9), f.summary, arguments);
  }
}

// The newest records of each rank, so that all ranks together stay below the limit.
template <typename T>
std::uint64_t first_traced(const Window<T>& window, std::uint64_t share) {
  return window.end() - std::min(window.size(), share);
}

}  // namespace

std::uint64_t write_perfetto(const Job& job, const Report& report, std::ostream& out) {
  JobView view = make_view(job);
  TraceFile file(out);
  trace_findings(report, file);
  std::uint64_t left_out = 0;
  std::uint64_t share = kEventsTraced / 2 / std::max<std::size_t>(1, view.ranks.size());
  for (const RankView& rank : view.ranks) {
    const RankRecords& records = rank.records();
    std::string name = "rank " + std::to_string(rank.rank) + " (" + records.host + ", pid " +
                       std::to_string(records.pid) + ")";
    RankTrace trace(view, rank, file, file.process(rank.rank + 1, name));
    std::uint64_t calls = first_traced(records.calls, share), visits = first_traced(records.visits, share);
    left_out += (calls - records.calls.first()) + (visits - records.visits.first());
    trace.visits(visits);
    trace.calls(calls);
    trace.memory();
    trace.instants();
  }
  return left_out;
}

}  // namespace dshang::job
