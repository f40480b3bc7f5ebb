#include "interpose/calls/record.h"

#include "core/rank/context.h"
#include "core/rank/pyframes.h"
#include "interpose/calls/group.h"
#include "interpose/calls/numbers.h"
#include "interpose/calls/thread.h"

namespace dshang::interpose::calls {
namespace {

bool has_stream(std::uint8_t op) { return !(kOpTable.ops[op].traits & flight::kOpLifeCycle); }

runtime::CallSpan span_of(const Call& call) {
  return {call.n, call.n, 0, reinterpret_cast<void*>(call.record->stream)};
}

}  // namespace

// ncclDataType_t of nccl.h.
flight::DType dtype_of(abi::DataType type) {
  using enum flight::DType;
  constexpr flight::DType kTypes[] = {kI8, kU8, kI32, kU32, kI64, kU64, kF16, kF32, kF64, kBF16, kF8E4M3, kF8E5M2};
  auto value = static_cast<unsigned>(type);
  return value < sizeof kTypes / sizeof kTypes[0] ? kTypes[value] : kUnknown;
}

// ncclRedOp_t of nccl.h; from ncclNumOps on they are handles of ncclRedOpCreatePreMulSum.
flight::ReduceOp reduce_op_of(abi::RedOp op) {
  using enum flight::ReduceOp;
  constexpr flight::ReduceOp kOps[] = {kSum, kProd, kMax, kMin, kAvg};
  auto value = static_cast<int>(op);
  if (value < 0) return kUnknown;
  return value < int{sizeof kOps / sizeof kOps[0]} ? kOps[value] : kPreMulSum;
}

Call open_call(const flight::Writer& writer, Row row, const Arguments& arguments, std::uint32_t comm,
               std::uint8_t library, std::uint64_t enter_ns) {
  std::uint8_t op = kOpTable.of_row[index(row)];
  Group& group = this_thread.groups[library];
  bool grouped = group.depth > 0;
  bool captured = has_stream(op) && runtime::capturing(arguments.stream);
  std::uint32_t site = rank::call_site(writer);
  rank::Purpose purpose = rank::take_purpose(writer);
  std::uint64_t number = take_number(writer, comm, op, arguments.root_or_peer);

  flight::Open<flight::CallRecord> record = writer.open_call();
  record->number = number;
  record->count = arguments.count;
  record->stream = reinterpret_cast<std::uint64_t>(arguments.stream);
  record->enter_ns = enter_ns;
  record->visits_before = purpose.visits_before;
  record->params = purpose.params;
  record->step = purpose.step;
  record->comm = comm;
  record->site = site;
  record->module = purpose.module;
  record->phase = purpose.phase;
  record->group = grouped ? group.ordinal : 0;
  record->root_or_peer = arguments.root_or_peer;
  record->thread = known_thread(writer).index;
  record->op = op;
  record->dtype = arguments.dtype;
  record->reduce_op = arguments.reduce_op;
  record->flags.store((grouped ? flight::kCallInGroup | flight::kCallGroupPending : 0u) |
                          (captured ? flight::kCallCaptured : 0u),
                      std::memory_order_relaxed);
  record.complete();
  inside(writer, row, enter_ns);

  Call call{&*record, record.n(), number, 0, !grouped && !captured && has_stream(op), grouped};
  if (grouped) add_to_group(group, call.n);
  // After the record is complete: placing a mark blocks where the queue to the GPU is full.
  if (call.marked) call.mark = runtime::mark_start(span_of(call));
  return call;
}

void close_call(const flight::Writer& writer, const Call& call, abi::Result result) {
  std::uint64_t now = now_ns();
  outside(writer, now);
  // While the call blocked, other threads may have gone once around the ring.
  bool kept = writer.call(call.n) == call.record;
  if (kept) {
    flight::CallRecord& record = *call.record;
    record.result = static_cast<std::uint32_t>(result);
    record.return_ns.store(now, std::memory_order_relaxed);
    std::uint32_t flags = flight::kCallReturned;
    if (!accepted(result)) {
      flags |= flight::kCallFailed;
      if (call.number) give_back(writer, record.comm, record.op, record.root_or_peer);
    } else if (call.marked && result == abi::Result::kInProgress) {
      flags |= flight::kCallProgressUnknown;  // its kernel is launched later, by another thread
    }
    if (call.marked) {
      record.flags.fetch_or(flags, std::memory_order_release);  // the poller writes others
    } else {
      flags |= record.flags.load(std::memory_order_relaxed);
      if (!accepted(result)) flags &= ~flight::kCallGroupPending;
      record.flags.store(flags, std::memory_order_release);
    }
  }
  if (!call.marked) return;
  runtime::CallSpan span = span_of(call);
  if (kept && result == abi::Result::kSuccess) {
    runtime::mark_end(span, call.mark);
  } else {
    runtime::mark_cancel(span, call.mark);
  }
}

}  // namespace dshang::interpose::calls
