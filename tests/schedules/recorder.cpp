#include "recorder.h"

#include <algorithm>
#include <cstring>

namespace dshang::schedules {
namespace {

using dshang::job::RankRecords;
namespace flight = dshang::flight;

const std::vector<flight::OpInfo>& operations() {
  using namespace flight;
  static const std::vector<OpInfo> ops = {{"all_gather", kOpCollective, 0},
                                          {"all_reduce", kOpCollective | kOpReduces, 0},
                                          {"reduce_scatter", kOpCollective | kOpReduces, 0},
                                          {"broadcast", kOpCollective | kOpRooted, 0},
                                          {"reduce", kOpCollective | kOpReduces | kOpRooted, 0},
                                          {"all_to_all", kOpCollective, 0},
                                          {"send", kOpSend, 0},
                                          {"recv", kOpRecv, 0}};
  return ops;
}

constexpr double kPoller = 0.004;  // seconds between two rounds of a rank's poller

flight::VisitKind kind_of(Kind kind) {
  switch (kind) {
    case Kind::kStep:
      return flight::VisitKind::kStep;
    case Kind::kPhasePush:
      return flight::VisitKind::kPhasePush;
    case Kind::kPhasePop:
      return flight::VisitKind::kPhasePop;
    case Kind::kEnter:
      return flight::VisitKind::kModuleEnter;
    case Kind::kExit:
      return flight::VisitKind::kModuleExit;
    case Kind::kLoopEnd:
      return flight::VisitKind::kLoopEnd;
    case Kind::kTeardown:
      return flight::VisitKind::kTeardown;
    default:
      return flight::VisitKind::kNone;
  }
}

bool is_recorded(const Recorded& recorded, Kind kind) {
  switch (kind) {
    case Kind::kStep:
      return recorded.steps;
    case Kind::kPhasePush:
    case Kind::kPhasePop:
      return recorded.phases;
    default:  // the probe's
      return recorded.modules;
  }
}

}  // namespace

Recorder::Recorder(const Job& job, const History& history, const std::vector<Mishap>& mishaps, Rng& rng)
    : job_(job), history_(history), mishaps_(mishaps), rng_(rng), cursors_(history.ranks.size()) {
  dshang::job::Names& names = recorded_.names;
  for (const Site& site : job.sites) {
    std::vector<dshang::job::FrameName> frames;
    for (const Frame& frame : site)
      frames.push_back({names.name(frame.file), names.name(frame.function), frame.line});
    sites_.push_back(job.recorded.sites ? names.site(std::move(frames), false) : 0);
  }
  for (const std::string& name : job.names) names_.push_back(names.name(name));
  recorded_.params.stall_after = job.stall_after;
  recorded_.journal.start_ns = kStartNs;
  recorded_.journal.dir = "DIR";
  for (std::size_t r = 0; r < history.ranks.size(); ++r) begin(r);
}

void Recorder::begin(std::size_t r) {
  recorded_.processes.push_back(std::make_unique<dshang::job::Process>());
  dshang::job::Process& process = *recorded_.processes.back();
  RankRecords& records = process.records;
  const RankTimes& times = history_.ranks[r];
  records.pid = process.journal.pid = 100 + static_cast<std::int32_t>(r);
  records.rank = records.local_rank = static_cast<std::int32_t>(r);
  records.world_size = job_.world;
  records.world_rank = static_cast<std::uint32_t>(r) + 1;
  records.provisional = false;
  records.host = "node";
  records.start_ns = ns(times.started);
  records.ops = operations();
  records.python = job_.recorded.sites ? 1 : 0;
  records.threads = {{static_cast<std::uint32_t>(records.pid), flight::kThreadCalls, 0, 0, 0, 0},
                     {static_cast<std::uint32_t>(records.pid) + 1000, flight::kThreadCalls, 0, 0, 0, 0}};
  process.journal.attach_ns = records.start_ns;
  for (std::size_t c = 0; c < job_.comms.size(); ++c) {
    dshang::job::Comm comm;
    std::size_t position = job_.position(static_cast<int>(c), static_cast<int>(r));
    bool is_member = position < job_.comms[c].ranks.size();
    comm.state = is_member ? flight::CommState::kReady : flight::CommState::kNone;
    comm.origin = job_.comms[c].parent < 0 ? flight::CommOrigin::kInit : flight::CommOrigin::kSplit;
    comm.id = is_member ? 1000 + c : 0;
    comm.parent = job_.comms[c].parent < 0 ? 0 : 1000 + static_cast<std::uint64_t>(job_.comms[c].parent);
    comm.color = job_.comms[c].color;
    comm.rank = is_member ? static_cast<std::int32_t>(position) : -1;
    comm.size = static_cast<std::int32_t>(job_.comms[c].ranks.size());
    comm.begin_ns = comm.ready_ns = ns(times.started);
    records.comms.push_back(comm);
  }
  Cursor& cursor = cursors_[r];
  for (const CallTimes& call : times.calls) {
    double started = job_.recorded.start_marks ? poller(call.reached, kPoller) : kNever;
    double done = job_.recorded.marks ? poller(call.done, kPoller) : kNever;
    cursor.seen_started.push_back(started);
    cursor.seen_done.push_back(std::max(done, started == kNever ? 0 : started));
  }
  const Mishap* mishap = mishaps_.empty() ? nullptr : &mishaps_[r];
  bool dies = mishap && mishap->kind == Mishap::Kind::kDies,
       stops = mishap && mishap->kind == Mishap::Kind::kStops;
  if (dies || stops) cursor.host_ends = cursor.poller_ends = times.mishap;
  cursor.ended = dies ? times.mishap : times.ended;
  dshang::job::Death& death = cursor.death;
  death.known = dshang::job::EndingKnown::kStatus;
  if (dies) {
    death.by_signal = mishap->code > 0;
    death.code = std::abs(mishap->code);
    bool killed = mishap->code == 9;
    if (killed && rng_.chance(0.5)) death = {0, dshang::job::EndingKnown::kNo, false, 0};
  }
}

bool Recorder::everybody_has_ended(double now) const {
  return std::all_of(cursors_.begin(), cursors_.end(), [&](const Cursor& one) { return one.ended <= now; });
}

void Recorder::add_visit(std::size_t r, const VisitTimes& from) {
  const Instruction& one = *from.instruction;
  dshang::job::Visit visit;
  visit.kind = kind_of(one.kind);
  visit.thread = one.thread;
  visit.time_ns = ns(from.time);
  visit.calls_before = from.calls_before;
  visit.step = job_.recorded.steps ? from.step : flight::kNoStep;
  if (from.phase >= 0 && job_.recorded.phases) visit.phase = names_[static_cast<std::size_t>(from.phase)];
  if (from.module >= 0 && job_.recorded.modules) visit.module = names_[static_cast<std::size_t>(from.module)];
  if (one.site >= 0) visit.site = sites_[static_cast<std::size_t>(one.site)];
  RankRecords& records = recorded_.processes[r]->records;
  if (one.kind == Kind::kStep) records.step = visit.step;
  records.visits.push(visit);
}

void Recorder::add_call(std::size_t r, std::size_t index, double) {
  const CallTimes& from = history_.ranks[r].calls[index];
  const Instruction& one = *from.instruction;
  RankRecords& records = recorded_.processes[r]->records;
  dshang::job::Call call;
  call.number = from.number;
  call.count = one.count;
  call.stream = 0x100 + static_cast<std::uint64_t>(one.stream);
  call.enter_ns = ns(from.enter);
  call.visits_before = records.visits.end();
  call.step = job_.recorded.steps ? from.step : flight::kNoStep;
  call.comm = static_cast<std::uint32_t>(one.comm);
  call.group = from.group;
  call.thread = one.thread;
  if (one.site >= 0) call.site = sites_[static_cast<std::size_t>(one.site)];
  if (from.phase >= 0 && job_.recorded.phases) call.phase = names_[static_cast<std::size_t>(from.phase)];
  if (from.module >= 0 && job_.recorded.modules) call.module = names_[static_cast<std::size_t>(from.module)];
  bool is_message = one.op == Op::kSend || one.op == Op::kRecv;
  call.root_or_peer = is_message ? one.peer : one.root;
  call.op = static_cast<std::uint8_t>(one.op);
  call.dtype = one.dtype;
  call.reduce_op = one.reduce_op;
  if (from.group) call.flags = flight::kCallInGroup | flight::kCallGroupPending;
  if (!is_message) ++records.comms[call.comm].calls;
  records.calls.push(call);
  cursors_[r].open.push_back(index);
  if (records.calls.size() > job_.ring) records.calls.drop_before(records.calls.end() - job_.ring);
}

// What changes in a call after it was made.
void Recorder::refresh(std::size_t r, std::size_t index, double now) {
  RankRecords& records = recorded_.processes[r]->records;
  if (!records.calls.has(index)) return;
  const CallTimes& from = history_.ranks[r].calls[index];
  const Cursor& cursor = cursors_[r];
  dshang::job::Call& call = records.calls.at(index);
  auto by_now = [&](double time, double ends) { return time <= now && time <= ends; };
  if (by_now(from.returned, cursor.host_ends)) {
    call.flags |= flight::kCallReturned;
    call.return_ns = ns(from.returned);
  }
  if (by_now(from.issued, cursor.host_ends)) {
    call.flags &= ~static_cast<std::uint32_t>(flight::kCallGroupPending);
    if (job_.recorded.marks) call.flags |= flight::kCallMarked;
  }
  // A start mark is placed before NCCL is asked.
  if (job_.recorded.start_marks && by_now(from.closing, cursor.host_ends))
    call.flags |= flight::kCallStartMarked;
  if (by_now(cursor.seen_started[index], cursor.poller_ends)) {
    call.flags |= flight::kCallStarted;
    call.started_ns = ns(cursor.seen_started[index]);
  }
  // An end mark lies behind the call: it is not there while the host is inside.
  double done = std::max(cursor.seen_done[index], from.issued);
  if (by_now(done, cursor.poller_ends)) {
    call.flags |= flight::kCallDone;
    call.done_ns = ns(done);
  }
}

void Recorder::threads(std::size_t r, double now) {
  RankRecords& records = recorded_.processes[r]->records;
  const RankTimes& times = history_.ranks[r];
  Cursor& cursor = cursors_[r];
  double until = std::min(now, cursor.host_ends);
  for (; cursor.depth < times.groups.size() && times.groups[cursor.depth].time <= until; ++cursor.depth) {
    const GroupDepth& depth = times.groups[cursor.depth];
    records.threads[static_cast<std::size_t>(depth.thread)].group_depth =
        static_cast<std::uint32_t>(depth.depth);
  }
  for (dshang::job::Thread& thread : records.threads) thread.inside = 0, thread.inside_since_ns = 0;
  while (cursor.inside < times.inside.size() && times.inside[cursor.inside].end <= until) ++cursor.inside;
  if (cursor.inside < times.inside.size() && times.inside[cursor.inside].begin <= until) {
    const Inside& inside = times.inside[cursor.inside];
    dshang::job::Thread& thread = records.threads[static_cast<std::size_t>(inside.thread)];
    thread.inside = recorded_.names.name(inside.function);
    thread.inside_since_ns = ns(inside.begin);
  }
  if (cursor.call > 0) {
    const CallTimes& last = times.calls[cursor.call - 1];
    dshang::job::Thread& thread = records.threads[last.instruction->thread];
    thread.last_ns = std::max(thread.last_ns, ns(last.enter));
    if (last.returned > until) {
      thread.inside = recorded_.names.name("ncclAllReduce");
      thread.inside_since_ns = ns(last.enter);
    }
  }
}

void Recorder::look(double now) {
  for (std::size_t r = 0; r < cursors_.size(); ++r) {
    Cursor& cursor = cursors_[r];
    dshang::job::Process& process = *recorded_.processes[r];
    if (process.journal.death) continue;
    const RankTimes& times = history_.ranks[r];
    double until = std::min(now, cursor.host_ends);
    for (;;) {
      bool more_calls = cursor.call < times.calls.size() && times.calls[cursor.call].enter <= until;
      bool more_visits = cursor.visit < times.visits.size() && times.visits[cursor.visit].time <= until;
      if (!more_calls && !more_visits) break;
      // In the order in which they were made.
      bool visit_first =
          more_visits && (!more_calls || times.visits[cursor.visit].calls_before <= cursor.call);
      if (visit_first) {
        const VisitTimes& visit = times.visits[cursor.visit++];
        if (is_recorded(job_.recorded, visit.instruction->kind)) add_visit(r, visit);
      } else {
        add_call(r, cursor.call++, now);
      }
    }
    std::erase_if(cursor.open, [&](std::uint64_t index) {
      refresh(r, index, now);
      if (!process.records.calls.has(index)) return true;
      std::uint32_t flags = process.records.calls.at(index).flags;
      bool issued = !(flags & flight::kCallGroupPending) && (flags & flight::kCallReturned);
      return issued && (!job_.recorded.marks || (flags & flight::kCallDone));
    });
    threads(r, now);
    if (job_.recorded.marks) process.records.poll_ns = ns(std::min(now, cursor.poller_ends));
    if (cursor.ended <= now) {
      process.journal.death = cursor.death;
      process.journal.death->time_ns = ns(cursor.ended);
    }
  }
  recorded_.journal.now_ns = ns(now);
}

void Recorder::sample(double now) {
  for (std::size_t r = 0; r < cursors_.size(); ++r) {
    dshang::job::Process& process = *recorded_.processes[r];
    if (process.journal.death) continue;
    const RankTimes& times = history_.ranks[r];
    const Mishap::Kind kind = mishaps_.empty() ? Mishap::Kind::kNone : mishaps_[r].kind;
    double still = kind == Mishap::Kind::kBlocks || kind == Mishap::Kind::kStops ? times.mishap : kNever;
    dshang::job::HostSample sample;
    sample.time_ns = ns(now);
    sample.cpu_seconds = std::min(now, still);  // a host that waits for its GPU spins
    sample.read_bytes = sample.written_bytes = 4096;
    sample.state = now < still ? 'R' : kind == Mishap::Kind::kStops ? 'T' : 'S';
    sample.syscall = now < still ? "" : "futex";
    process.journal.samples.push_back(sample);
  }
}

void Recorder::stack_of(std::size_t r, double now) {
  const Mishap::Kind kind = mishaps_.empty() ? Mishap::Kind::kNone : mishaps_[r].kind;
  if (kind == Mishap::Kind::kStops) return;  // nobody answers
  dshang::job::Stack stack;
  stack.time_ns = ns(now);
  stack.tid = static_cast<std::uint32_t>(recorded_.processes[r]->records.pid);
  stack.source = flight::StackSource::kWithGil;
  dshang::job::Names& names = recorded_.names;
  std::vector<dshang::job::FrameName> frames = {{names.name("data.py"), names.name("load_batch"), 31},
                                                {names.name("train.py"), names.name("main"), 21}};
  stack.site = names.site(std::move(frames), false);
  recorded_.processes[r]->records.stacks.push(stack);
}

}  // namespace dshang::schedules
