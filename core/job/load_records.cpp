// One record of each kind.
#include <algorithm>

#include "core/job/loader.h"

namespace dshang::job {

using flight::Copy;
using flight::SlotState;

bool settled(std::uint32_t flags) {
  if (!(flags & flight::kCallReturned) || (flags & flight::kCallGroupPending)) return false;
  return flags & (flight::kCallFailed | flight::kCallDone);
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
  out->call_ns = raw->call_ns, out->retry_ns = raw->retry_ns;
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

}  // namespace dshang::job
