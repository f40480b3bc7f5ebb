#include "core/job/load.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <tuple>

#include "core/job/printable.h"

namespace dshang::job {
namespace {

using flight::Copy;
using flight::Reader;
using flight::Ring;
using flight::SlotState;

// Calls looked at again in one update; more are taken in turns.
constexpr std::size_t kOpenCallsPerUpdate = 8192;

template <typename Enum>
Enum known(Enum value, Enum last, Enum fallback) {
  return static_cast<unsigned>(value) <= static_cast<unsigned>(last) ? value : fallback;
}

constexpr std::uint32_t kGpuFlags = flight::kCallMarked | flight::kCallStartMarked;

class Loader {
 public:
  Loader(RankRecords& records, const Reader& reader, Names& names, LoadState& state)
      : records_(records),
        reader_(reader),
        names_(names),
        state_(state),
        ids_(reader, names, state.ids),
        header_(reader.header()) {}

  bool run();

 private:
  void name_waiting();

  template <typename T>
  void set(T& field, T value);
  void identity();
  void counters();
  void ops();
  void comms();
  void threads();
  bool call(std::uint64_t n, Call* out);  // false = may still change
  bool visit(std::uint64_t n, Visit* out);
  bool memory_step(std::uint64_t n, MemoryStep* out);
  bool alloc_failure(std::uint64_t n, AllocFailure* out);
  bool fact(std::uint64_t n, FactRecord* out);
  bool exception(std::uint64_t n, Exception* out);
  bool stack(std::uint64_t n, Stack* out);
  void calls();
  void refresh_calls();
  void alloc_failures();
  template <typename T>
  void ring(Ring ring, Window<T>& window, std::vector<std::uint64_t>& open,
            bool (Loader::*load)(std::uint64_t, T*));
  void remember(const LoadState::Unnamed& entry);

  RankRecords& records_;
  const Reader& reader_;
  Names& names_;
  LoadState& state_;
  RawIds ids_;
  const flight::Header& header_;
  bool changed_ = false;
};

template <typename T>
void Loader::set(T& field, T value) {
  if (field == value) return;
  field = std::move(value);
  changed_ = true;
}

// ---- names ----

// Names what became readable since the last update, then the records that wait for it.
void Loader::name_waiting() {
  if (!ids_.refresh() && state_.unnamed.size() <= state_.unnamed_limit) return;
  std::erase_if(state_.unnamed, [&](LoadState::Unnamed& entry) {
    bool there = entry.visit ? records_.visits.has(entry.n) : records_.calls.has(entry.n);
    if (!there) return true;
    bool missing = false;
    NameId module = ids_.name(entry.module, &missing), phase = ids_.name(entry.phase, &missing);
    SiteId at = ids_.site(entry.site, &missing);
    if (entry.visit) {
      Visit& visit = records_.visits.at(entry.n);
      set(visit.module, module), set(visit.phase, phase), set(visit.site, at);
      set(visit.detail, ids_.name(entry.detail, &missing));
    } else {
      Call& call = records_.calls.at(entry.n);
      set(call.module, module), set(call.phase, phase), set(call.site, at);
    }
    return !missing;
  });
  state_.unnamed_limit = std::max<std::size_t>(65536, 2 * state_.unnamed.size());
}

void Loader::remember(const LoadState::Unnamed& entry) { state_.unnamed.push_back(entry); }

// ---- the process ----

void Loader::identity() {
  set(records_.pid, header_.pid);
  set(records_.rank, header_.rank);
  set(records_.local_rank, header_.local_rank);
  set(records_.world_size, header_.world_size);
  set(records_.restart_count, header_.restart_count);
  set(records_.provisional, header_.provisional != 0);
  set(records_.pid_start_ticks, header_.pid_start_ticks);
  set(records_.job, header_.job);
  set(records_.net_namespace, header_.net_namespace);
  set(records_.pid_namespace, header_.pid_namespace);
  set(records_.start_ns, header_.start_ns);
  set(records_.start_real_ns, header_.start_real_ns);
  if (records_.host.empty()) {
    char host[sizeof(flight::Header::host) + 1];
    reader_.host(host);
    set(records_.host, printable(host));
  }
}

void Loader::counters() {
  constexpr auto relaxed = std::memory_order_relaxed;
  for (unsigned kind = 0; kind < flight::kMemoryKinds; ++kind) {
    set(records_.live[kind], header_.memory.bytes[kind].load(relaxed));
    set(records_.peak[kind], header_.memory.peak[kind].load(relaxed));
  }
  set(records_.allocations, header_.memory.allocations.load(relaxed));
  set(records_.frees, header_.memory.frees.load(relaxed));
  set(records_.failures, header_.memory.failures.load(relaxed));
  set(records_.retries, header_.memory.retries.load(relaxed));
  set(records_.untracked, header_.memory.untracked.load(relaxed));
  set(records_.step, header_.step.load(relaxed));
  set(records_.world_rank, header_.world_rank.load(relaxed));
  set(records_.python, std::min(header_.python.load(relaxed), 2u));
  records_.poll_ns = header_.poll_ns.load(relaxed);
  set(records_.poll_stuck_ns, header_.poll_stuck_ns.load(relaxed));
  set(records_.graph_launches, header_.graph_launches.load(relaxed));
  set(records_.async_error, header_.async_error.load(relaxed));
  set(records_.dropped_strings, header_.dropped_strings.load(relaxed));
  set(records_.dropped_sites, header_.dropped_sites.load(relaxed));
  set(records_.dropped_comms, header_.dropped_comms.load(relaxed));
  set(records_.dropped_threads, header_.dropped_threads.load(relaxed));
  flight::EndingKind kind = header_.ending.kind.load(std::memory_order_acquire);
  set(records_.ending, known(kind, flight::EndingKind::kAbort, flight::EndingKind::kNone));
  if (records_.ending == flight::EndingKind::kNone) return;
  set(records_.ending_code, header_.ending.code);
  set(records_.ending_ns, header_.ending.time_ns);
}

void Loader::ops() {
  if (!records_.ops.empty()) return;
  std::size_t used = 0;
  for (std::uint32_t i = 0; i < reader_.op_count() && i <= UINT8_MAX; ++i) {
    Copy<flight::OpInfo> entry;
    reader_.op(i, &entry);
    flight::OpInfo op{};
    op.traits = entry->traits;
    for (std::size_t c = 0; c + 1 < sizeof op.name && entry->name[c]; ++c) {
      unsigned char letter = static_cast<unsigned char>(entry->name[c]);
      op.name[c] = letter < 0x80 && (std::isalnum(letter) || letter == '_') ? static_cast<char>(letter) : '_';
    }
    records_.ops.push_back(op);
    if (op.name[0]) used = records_.ops.size();
  }
  records_.ops.resize(used);
  changed_ = true;
}

void Loader::comms() {
  std::uint32_t count = reader_.comm_count();
  if (count < records_.comms.size()) count = static_cast<std::uint32_t>(records_.comms.size());
  if (count != records_.comms.size()) records_.comms.resize(count), changed_ = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    Copy<flight::CommEntry> entry;
    if (!reader_.comm(i, &entry)) continue;
    Comm& comm = records_.comms[i];
    bool missing = false;
    set(comm.state, known(entry->state.load(std::memory_order_relaxed), flight::CommState::kFailed,
                          flight::CommState::kNone));
    set(comm.origin, known(entry->origin, flight::CommOrigin::kGrow, flight::CommOrigin::kUnknown));
    set(comm.id, entry->id), set(comm.nccl_hash, entry->nccl_hash), set(comm.handle, entry->handle);
    set(comm.parent, entry->parent), set(comm.rank, entry->rank), set(comm.size, entry->size);
    set(comm.color, entry->color), set(comm.ordinal, entry->ordinal), set(comm.device, entry->device);
    set(comm.begin_ns, entry->begin_ns), set(comm.ready_ns, entry->ready_ns), set(comm.end_ns, entry->end_ns);
    set(comm.free_before, entry->free_before), set(comm.free_after, entry->free_after);
    set(comm.calls, entry->calls.load(std::memory_order_relaxed));
    set(comm.site, ids_.site(entry->site, &missing));
  }
}

void Loader::threads() {
  for (std::uint32_t i = 0; i < reader_.thread_count(); ++i) {
    Copy<flight::ThreadEntry> entry;
    reader_.thread(i, &entry);
    constexpr auto relaxed = std::memory_order_relaxed;
    std::uint32_t tid = entry->tid.load(relaxed);
    if (tid == 0 && i >= records_.threads.size()) return;  // entries are given out in order
    if (i >= records_.threads.size()) records_.threads.emplace_back(), changed_ = true;
    Thread& thread = records_.threads[i];
    bool missing = false;
    set(thread.tid, tid);
    set(thread.flags, entry->flags.load(relaxed));
    set(thread.group_depth, entry->group_depth.load(relaxed));
    set(thread.inside, ids_.name(entry->inside.load(relaxed), &missing));
    set(thread.inside_since_ns, entry->inside_since_ns.load(relaxed));
    set(thread.last_ns, entry->last_ns.load(relaxed));
  }
}

// ---- records ----

bool settled(std::uint32_t flags) {
  if (!(flags & flight::kCallReturned) || (flags & flight::kCallGroupPending)) return false;
  return flags & (flight::kCallFailed | flight::kCallDone);
}

bool unmarked(std::uint32_t flags) {
  return (flags & flight::kCallReturned) && !(flags & flight::kCallGroupPending) && !(flags & kGpuFlags);
}

bool Loader::call(std::uint64_t n, Call* out) {
  *out = {};
  Copy<flight::CallRecord> raw;
  flight::CallProgress progress;
  SlotState state = reader_.call(n, &raw);
  if (state == SlotState::kComplete) state = reader_.call_progress(n, &progress);
  if (state != SlotState::kComplete || raw->comm >= records_.comms.size() || raw->op >= records_.ops.size()) {
    out->torn = true;
    return state != SlotState::kUnfinished;
  }
  out->number = raw->number;
  out->count = raw->count;
  out->stream = raw->stream;
  out->enter_ns = raw->enter_ns;
  out->return_ns = progress.return_ns;
  out->started_ns = progress.started_ns;
  out->done_ns = progress.done_ns;
  out->visits_before = raw->visits_before;
  out->params = raw->params;
  out->step = raw->step;
  out->comm = raw->comm;
  out->group = raw->group;
  out->thread = raw->thread;
  out->root_or_peer = raw->root_or_peer;
  out->op = raw->op;
  out->dtype = known(raw->dtype, flight::DType::kUnknown, flight::DType::kUnknown);
  out->reduce_op = known(raw->reduce_op, flight::ReduceOp::kUnknown, flight::ReduceOp::kUnknown);
  out->flags = progress.flags;
  out->result = progress.result;
  bool missing = false;
  out->site = ids_.site(raw->site, &missing);
  out->module = ids_.name(raw->module, &missing);
  out->phase = ids_.name(raw->phase, &missing);
  if (missing) remember({n, raw->site, raw->module, raw->phase, 0, false});
  return settled(out->flags);
}

bool Loader::visit(std::uint64_t n, Visit* out) {
  *out = {};
  Copy<flight::VisitRecord> raw;
  SlotState state = reader_.visit(n, &raw);
  if (state != SlotState::kComplete) {
    out->torn = true;
    return state == SlotState::kGone;
  }
  out->kind = known(raw->kind, flight::VisitKind::kTeardown, flight::VisitKind::kNone);
  out->training = raw->training <= 2 ? raw->training : 2;
  out->thread = raw->thread;
  out->micro = raw->micro;
  out->time_ns = raw->time_ns;
  out->calls_before = raw->calls_before;
  out->params = raw->params;
  out->step = raw->step;
  bool missing = false;
  out->module = ids_.name(raw->module, &missing);
  out->phase = ids_.name(raw->phase, &missing);
  out->detail = ids_.name(raw->detail, &missing);
  out->site = ids_.site(raw->site, &missing);
  if (missing) remember({n, raw->site, raw->module, raw->phase, raw->detail, true});
  return true;
}

bool Loader::memory_step(std::uint64_t n, MemoryStep* out) {
  Copy<flight::MemoryStep> raw;
  SlotState state = reader_.memory_step(n, &raw);
  if (state != SlotState::kComplete) return state == SlotState::kGone;
  out->time_ns = raw->time_ns;
  out->step = raw->step;
  std::copy_n(raw->live, flight::kMemoryKinds, out->live);
  std::copy_n(raw->peak, flight::kMemoryKinds, out->peak);
  out->allocations = raw->allocations, out->frees = raw->frees;
  out->failures = raw->failures, out->retries = raw->retries;
  out->reserved_peak = raw->reserved_peak;
  out->allocated_peak = raw->allocated_peak;
  out->device_free = raw->device_free, out->device_total = raw->device_total;
  bool missing = false;
  out->peak_phase = ids_.name(raw->peak_phase, &missing);
  out->peak_module = ids_.name(raw->peak_module, &missing);
  std::copy_n(raw->batch, flight::kBatchSizes, out->batch);
  for (unsigned i = 0; i < flight::kMemoryPhases; ++i)
    out->phases[i] = {ids_.name(raw->phases[i].phase, &missing), raw->phases[i].allocated};
  return !missing;
}

bool Loader::alloc_failure(std::uint64_t n, AllocFailure* out) {
  Copy<flight::AllocFailure> raw;
  SlotState state = reader_.alloc_failure(n, &raw);
  if (state != SlotState::kComplete) return state == SlotState::kGone;
  bool missing = false;
  out->time_ns = raw->time_ns;
  out->size = raw->size, out->free = raw->free, out->total = raw->total, out->live_device = raw->live_device;
  out->step = raw->step;
  out->phase = ids_.name(raw->phase, &missing);
  out->module = ids_.name(raw->module, &missing);
  out->site = ids_.site(raw->site, &missing);
  out->thread = raw->thread;
  out->result = raw->result;
  out->kind = raw->kind < flight::MemoryKind::kCount ? raw->kind : flight::MemoryKind::kDevice;
  out->retried = raw->retried != 0;
  out->live_other = raw->live_other;
  out->allocator_reserved = raw->allocator_reserved, out->allocator_allocated = raw->allocator_allocated;
  std::copy_n(raw->batch, flight::kBatchSizes, out->batch);
  return !missing;
}

bool Loader::fact(std::uint64_t n, FactRecord* out) {
  Copy<flight::Fact> raw;
  SlotState state = reader_.fact(n, &raw);
  if (state != SlotState::kComplete) return state == SlotState::kGone;
  bool missing = false;
  *out = {raw->time_ns, ids_.name(raw->key, &missing), ids_.name(raw->value, &missing)};
  return !missing;
}

bool Loader::exception(std::uint64_t n, Exception* out) {
  Copy<flight::ExceptionRecord> raw;
  SlotState state = reader_.exception(n, &raw);
  if (state != SlotState::kComplete) return state == SlotState::kGone;
  bool missing = false;
  out->time_ns = raw->time_ns;
  out->step = raw->step;
  out->type = ids_.name(raw->type, &missing);
  out->message = ids_.name(raw->message, &missing);
  out->phase = ids_.name(raw->phase, &missing);
  out->module = ids_.name(raw->module, &missing);
  out->site = ids_.site(raw->site, &missing);
  out->thread = raw->thread;
  return !missing;
}

bool Loader::stack(std::uint64_t n, Stack* out) {
  Copy<flight::StackRecord> raw;
  SlotState state = reader_.stack(n, &raw);
  if (state != SlotState::kComplete) return state == SlotState::kGone;
  bool missing = false;
  out->time_ns = raw->time_ns;
  out->tid = raw->tid;
  out->request = raw->request;
  out->source = known(raw->source, flight::StackSource::kRefused, flight::StackSource::kNone);
  std::uint32_t frames = std::min<std::uint32_t>(raw->frame_count, flight::kStackFrames);
  out->site = ids_.stack(raw->frames, frames, raw->truncated != 0, &missing);
  return !missing;
}

// ---- rings ----

template <typename T>
void Loader::ring(Ring ring, Window<T>& window, std::vector<std::uint64_t>& open,
                  bool (Loader::*load)(std::uint64_t, T*)) {
  if (ring.first() > window.first()) window.drop_before(ring.first()), changed_ = true;
  std::erase_if(open, [&](std::uint64_t n) {
    if (!window.has(n)) return true;
    T item{};
    if (!(this->*load)(n, &item)) return false;
    window.at(n) = std::move(item);
    return changed_ = true;
  });
  for (std::uint64_t n = window.end(); n < ring.head; ++n) {
    T item{};
    if (!(this->*load)(n, &item)) open.push_back(n);
    window.push(item);
    changed_ = true;
  }
}

void Loader::calls() {
  Ring ring = reader_.calls();
  comms();  // after the head: every call before it then finds its communicator
  if (ring.first() > records_.calls.first()) records_.calls.drop_before(ring.first()), changed_ = true;
  refresh_calls();
  for (std::uint64_t n = records_.calls.end(); n < ring.head; ++n) {
    Call item;
    if (!call(n, &item)) state_.open_calls.push_back({n, unmarked(item.flags)});
    records_.calls.push(std::move(item));
    changed_ = true;
  }
}

void Loader::refresh_calls() {
  std::vector<LoadState::OpenCall>& open = state_.open_calls;
  std::erase_if(open, [&](const LoadState::OpenCall& entry) { return !records_.calls.has(entry.n); });
  std::size_t budget = std::min(open.size(), kOpenCallsPerUpdate);
  bool any_settled = false;
  for (std::size_t i = 0; i < budget; ++i) {
    LoadState::OpenCall& entry = open[(state_.open_cursor + i) % open.size()];
    Call& known = records_.calls.at(entry.n);
    bool is_settled;
    if (known.torn) {
      is_settled = call(entry.n, &known);
      changed_ = changed_ || !known.torn;
      entry.was_unmarked = unmarked(known.flags);
    } else {
      flight::CallProgress now;
      if (reader_.call_progress(entry.n, &now) == SlotState::kComplete) {
        set(known.flags, now.flags), set(known.result, now.result), set(known.return_ns, now.return_ns);
        set(known.started_ns, now.started_ns), set(known.done_ns, now.done_ns);
        // Marks are placed about when a call returns: one that had none a whole update ago gets none.
        is_settled = settled(now.flags) || (entry.was_unmarked && unmarked(now.flags));
        entry.was_unmarked = unmarked(now.flags);
      } else {
        is_settled = true;  // overwritten; what was read stays until the window moves on
      }
    }
    if (is_settled) entry.n = UINT64_MAX, any_settled = true;
  }
  state_.open_cursor = open.empty() ? 0 : (state_.open_cursor + budget) % open.size();
  if (any_settled)
    std::erase_if(open, [](const LoadState::OpenCall& entry) { return entry.n == UINT64_MAX; });
}

// A failure may be told later that its retry succeeded: the few there are, are read anew each time.
void Loader::alloc_failures() {
  Ring ring = reader_.alloc_failures();
  Window<AllocFailure>& window = records_.alloc_failures;
  if (ring.first() > window.first()) window.drop_before(ring.first()), changed_ = true;
  for (std::uint64_t n = window.first(); n < ring.head; ++n) {
    AllocFailure item;
    if (!window.has(n)) window.push(item), changed_ = true;
    alloc_failure(n, &item);
    AllocFailure& old = window.at(n);
    if (item.time_ns == 0 && old.time_ns != 0) continue;  // overwritten meanwhile
    bool same = std::tie(old.time_ns, old.retried, old.site, old.module, old.phase) ==
                std::tie(item.time_ns, item.retried, item.site, item.module, item.phase);
    changed_ = changed_ || !same;
    old = item;
  }
}

bool Loader::run() {
  identity();
  ops();
  std::uint64_t facts_before = records_.facts.end();
  bool facts_open = !state_.open_facts.empty();
  ring(reader_.facts(), records_.facts, state_.open_facts, &Loader::fact);
  if (facts_open || records_.facts.end() != facts_before) apply_environment_facts(records_, names_);
  name_waiting();
  ring(reader_.visits(), records_.visits, state_.open_visits, &Loader::visit);
  calls();
  ring(reader_.memory_steps(), records_.memory_steps, state_.open_memory_steps, &Loader::memory_step);
  alloc_failures();
  ring(reader_.exceptions(), records_.exceptions, state_.open_exceptions, &Loader::exception);
  ring(reader_.stacks(), records_.stacks, state_.open_stacks, &Loader::stack);
  threads();
  counters();
  return changed_;
}

}  // namespace

bool update(RankRecords& records, const flight::Reader& reader, Names& names, LoadState& state) {
  if (!reader) return false;
  return Loader(records, reader, names, state).run();
}

void apply_environment_facts(const RankRecords& records, Names& names) {
  std::vector<std::string> endings = names.site_skip();
  for (std::uint64_t n = records.facts.first(); n < records.facts.end(); ++n) {
    const FactRecord& fact = records.facts.at(n);
    if (names.text(fact.key) != "env.DSHANG_SITE_SKIP") continue;
    std::string_view rest = names.text(fact.value);
    while (!rest.empty()) {
      std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view ending = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      while (ending.starts_with(' ')) ending.remove_prefix(1);
      while (ending.ends_with(' ')) ending.remove_suffix(1);
      if (ending.empty() || std::find(endings.begin(), endings.end(), ending) != endings.end()) continue;
      endings.emplace_back(ending);
    }
  }
  names.set_site_skip(std::move(endings));
}

}  // namespace dshang::job
