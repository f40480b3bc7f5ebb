// What each line of the readable form (dump.h) holds, in its order, said once for both directions: F is
// FieldWriter (dump.cpp) or FieldReader (parse.cpp).  Every field is a reference and what it is where the
// line does not say it.
//
// F has: bare(name) · bare_number · bare_signed · bare_step, which must be there; optional bare words
// word_if(value, table, default), number_if; bits(value, table) for sets of bare words; pairs number, hex,
// id, time, step, name, site, comm, word, sizes (4x8192); names(set) for flags=a+b.
#pragma once

#include "core/job/text_context.h"
#include "core/job/text_words.h"

namespace dshang::job {

void rank_fields(auto& f, auto& r) {
  f.bare_signed(r.rank);
  f.time_from(0, "start", r.start_ns, kDefaultStartNs);
  f.number("pid", r.pid, 0);
  f.number("world", r.world_size, 0);
  f.number("local", r.local_rank, r.rank);
  f.number("restart", r.restart_count, 0);
  f.plain("host", r.host);
  f.time_from(0, "started", r.start_real_ns, 0);
  f.number("start_ticks", r.pid_start_ticks, 0);
  f.hex("job", r.job, 0);
  f.number("net_namespace", r.net_namespace, 0);
  f.number("pid_namespace", r.pid_namespace, 0);
}

// Said after the communicators, because it mostly follows from them.
void process_fields(auto& f, auto& r, const TextContext& context) {
  f.word("provisional", r.provisional, words::kYesNo, r.comms.empty());
  f.number("world_rank", r.world_rank, default_world_rank(r));
  f.step("step", r.step, context.announced_step());
  f.word("python", r.python, words::kPython, 1u);
  f.time("poll", r.poll_ns, 0);
  f.time("poll_stuck", r.poll_stuck_ns, 0);
  f.number("graph_launches", r.graph_launches, 0);
  f.hex("async_error", r.async_error, 0);
  f.number("dropped_strings", r.dropped_strings, 0);
  f.number("dropped_sites", r.dropped_sites, 0);
  f.number("dropped_comms", r.dropped_comms, 0);
  f.number("dropped_threads", r.dropped_threads, 0);
}

void op_fields(auto& f, auto& op) {
  f.op_name(op.name);
  f.bits(op.traits, words::kOpTrait);
}

struct FirstNumbers {
  std::uint64_t calls = 0, visits = 0, memory = 0, alloc_failed = 0, exceptions = 0, stacks = 0, facts = 0;
  friend bool operator==(const FirstNumbers&, const FirstNumbers&) = default;
};

void first_fields(auto& f, auto& first) {
  f.number("calls", first.calls, 0);
  f.number("visits", first.visits, 0);
  f.number("memory", first.memory, 0);
  f.number("alloc_failed", first.alloc_failed, 0);
  f.number("exceptions", first.exceptions, 0);
  f.number("stacks", first.stacks, 0);
  f.number("facts", first.facts, 0);
}

// `calls` is not in it: its default is known only after all calls.
void comm_fields(auto& f, auto& c, const RankRecords& r, std::uint64_t default_id,
                 const TextContext& context) {
  f.word("state", c.state, words::kCommState, flight::CommState::kReady);
  f.word("origin", c.origin, words::kCommOrigin, flight::CommOrigin::kInit);
  f.id("id", c.id, default_id);
  f.number("rank", c.rank, r.rank);
  f.number("size", c.size, r.world_size);
  f.id("parent", c.parent, 0);
  f.number("color", c.color, 0);
  f.number("ordinal", c.ordinal, 0);
  f.number("device", c.device, 0);
  f.hex("hash", c.nccl_hash, 0);
  f.hex("handle", c.handle, 0);
  f.site("site", c.site);
  f.name("label", c.label, 0);
  f.time("begin", c.begin_ns, context.at_ns());
  bool was_ready = c.state == flight::CommState::kReady || c.state == flight::CommState::kFinalized ||
                   c.state == flight::CommState::kDestroyed;
  f.time("ready", c.ready_ns, was_ready ? c.begin_ns : 0);
  f.time("end", c.end_ns, 0);
  f.number("free_before", c.free_before, flight::kUnknownBytes);
  f.number("free_after", c.free_after, flight::kUnknownBytes);
}

// Behind `call <op>`.
void call_fields(auto& f, auto& c, std::uint32_t traits, std::uint64_t visits_before,
                 const TextContext& context) {
  using namespace flight;
  f.number_if(c.count, 0);
  f.word_if(c.dtype, words::kDType, DType::kNone);
  f.word_if(c.reduce_op, words::kReduceOp, ReduceOp::kNone);
  f.number("group", c.group, 0);
  f.call_flags(c.flags, c.group ? +kCallInGroup : 0u);
  f.number(traits & (kOpSend | kOpRecv) ? "peer" : "root", c.root_or_peer, -1);
  f.comm("comm", c.comm);
  f.number("number", c.number, context.next_number(c, traits));
  f.step("step", c.step, context.step());
  f.name("phase", c.phase, context.phase());
  f.name("module", c.module, context.module());
  f.site("site", c.site);
  f.time("at", c.enter_ns, context.next_at_ns());
  f.time("return", c.return_ns, c.flags & kCallReturned ? c.enter_ns : 0);
  f.time("started", c.started_ns, c.flags & kCallStarted ? c.enter_ns : 0);
  f.time("done", c.done_ns, c.flags & kCallDone ? c.enter_ns : 0);
  f.number("thread", c.thread, 0);
  f.hex("stream", c.stream, 0);
  f.hex("params", c.params, 0);
  f.number("result", c.result, 0);
  f.number("visits_before", c.visits_before, visits_before);
}

// Behind `visit <kind>`.
void visit_fields(auto& f, auto& v, std::uint64_t calls_before, const TextContext& context) {
  using flight::VisitKind;
  // What the kind is about stands bare behind it.
  bool is_step = v.kind == VisitKind::kStep, is_micro = v.kind == VisitKind::kMicroStep;
  bool is_phase = v.kind == VisitKind::kPhasePush;
  bool is_module = v.kind == VisitKind::kModuleEnter;
  bool is_detail = v.kind == VisitKind::kGather || v.kind == VisitKind::kTraceMode;
  if (is_step) f.bare_step(v.step);
  if (is_micro) f.bare_unsigned(v.micro);
  if (is_phase) f.bare(v.phase);
  if (is_module) f.bare(v.module);
  if (is_detail) f.bare(v.detail);
  if (!is_step) f.step("step", v.step, context.step());
  if (!is_micro) f.number("micro", v.micro, is_step ? 0 : context.micro());
  if (!is_phase) f.name("phase", v.phase, context.phase());
  if (!is_module) f.name("module", v.module, context.module());
  if (!is_detail) f.name("detail", v.detail, 0);
  f.word("training", v.training, words::kTraining, std::uint8_t{2});
  f.site("site", v.site);
  f.time("at", v.time_ns, context.next_at_ns());
  f.number("thread", v.thread, 0);
  f.hex("params", v.params, 0);
  f.number("calls_before", v.calls_before, calls_before);
}

void memory_kinds(auto& f, auto& live, auto& peak) {
  static constexpr const char* kPeaks[] = {"device_peak", "host_peak",    "managed_peak",
                                           "pool_peak",   "virtual_peak", "registered_peak"};
  static_assert(std::size(kPeaks) == flight::kMemoryKinds);
  for (unsigned kind = 0; kind < flight::kMemoryKinds; ++kind) {
    f.number(words::kMemory[kind].data(), live[kind], 0);
    f.number(kPeaks[kind], peak[kind], live[kind]);
  }
}

void memory_fields(auto& f, auto& m, const TextContext& context) {
  f.step("step", m.step, context.step());
  f.time("at", m.time_ns, context.at_ns());
  memory_kinds(f, m.live, m.peak);
  f.number("allocations", m.allocations, 0);
  f.number("frees", m.frees, 0);
  f.number("failures", m.failures, 0);
  f.number("retries", m.retries, 0);
  f.number("reserved_peak", m.reserved_peak, flight::kUnknownBytes);
  f.number("allocated_peak", m.allocated_peak, flight::kUnknownBytes);
  f.number("device_free", m.device_free, flight::kUnknownBytes);
  f.number("device_total", m.device_total, flight::kUnknownBytes);
  f.name("peak_phase", m.peak_phase, 0);
  f.name("peak_module", m.peak_module, 0);
  f.sizes("batch", m.batch);
  static constexpr const char* kPhases[] = {"phase_a", "phase_b", "phase_c", "phase_d", "phase_e", "phase_f"};
  static constexpr const char* kAllocated[] = {"allocated_a", "allocated_b", "allocated_c",
                                               "allocated_d", "allocated_e", "allocated_f"};
  static_assert(std::size(kPhases) == flight::kMemoryPhases && std::size(kAllocated) == flight::kMemoryPhases);
  for (unsigned i = 0; i < flight::kMemoryPhases; ++i) {
    f.name(kPhases[i], m.phases[i].phase, 0);
    f.number(kAllocated[i], m.phases[i].allocated, 0);
  }
  f.number("call_ns", m.call_ns, 0);
  f.number("retry_ns", m.retry_ns, 0);
}

// Memory as it is now.
void now_fields(auto& f, auto& r) {
  memory_kinds(f, r.live, r.peak);
  f.number("allocations", r.allocations, 0);
  f.number("frees", r.frees, 0);
  f.number("failures", r.failures, 0);
  f.number("retries", r.retries, 0);
  f.number("untracked", r.untracked, 0);
}

void alloc_failed_fields(auto& f, auto& a, const TextContext& context) {
  f.bare_unsigned(a.size);
  f.word("kind", a.kind, words::kMemory, flight::MemoryKind::kDevice);
  f.number("free", a.free, flight::kUnknownBytes);
  f.number("total", a.total, flight::kUnknownBytes);
  f.number("live", a.live_device, 0);
  f.word("retried", a.retried, words::kYesNo, false);
  f.step("step", a.step, context.step());
  f.name("phase", a.phase, context.phase());
  f.name("module", a.module, context.module());
  f.site("site", a.site);
  f.time("at", a.time_ns, context.at_ns());
  f.number("thread", a.thread, 0);
  f.number("result", a.result, 0);
  f.number("live_other", a.live_other, 0);
  f.number("allocator_reserved", a.allocator_reserved, flight::kUnknownBytes);
  f.number("allocator_allocated", a.allocator_allocated, flight::kUnknownBytes);
  f.sizes("batch", a.batch);
}

void exception_fields(auto& f, auto& e, const TextContext& context) {
  f.bare(e.type);
  f.bare(e.message);
  f.step("step", e.step, context.step());
  f.name("phase", e.phase, context.phase());
  f.name("module", e.module, context.module());
  f.site("site", e.site);
  f.time("at", e.time_ns, context.at_ns());
  f.number("thread", e.thread, 0);
}

void stack_fields(auto& f, auto& s, const TextContext& context) {
  f.bare_unsigned(s.tid);
  f.word("source", s.source, words::kStackSource, flight::StackSource::kWithGil);
  f.site("site", s.site);
  f.time("at", s.time_ns, context.at_ns());
  f.number("request", s.request, 0);
}

void fact_fields(auto& f, auto& fact, const TextContext& context) {
  f.bare(fact.key);
  f.bare(fact.value);
  f.time("at", fact.time_ns, context.at_ns());
}

void thread_fields(auto& f, auto& t) {
  f.bare_unsigned(t.tid);
  f.bits(t.flags, words::kThreadFlag);
  f.name("inside", t.inside, 0);
  f.time("since", t.inside_since_ns, 0);
  f.time("last", t.last_ns, 0);
  f.number("group_depth", t.group_depth, 0);
}

// Behind `ending`.
void ending_fields(auto& f, auto& r, const TextContext& context) {
  f.word_first(r.ending, words::kEnding);
  f.bare_signed(r.ending_code);
  f.time("at", r.ending_ns, context.at_ns());
}

}  // namespace dshang::job
