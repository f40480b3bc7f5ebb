// A call record: opened before the real call, since the call may never return, and closed after it.
//
// Threads: a call is opened and closed by one thread.  No lock, no allocation.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"
#include "interpose/runtime/api.h"
#include "interpose/symbols/rows.h"

namespace dshang::interpose::calls {

// What the arguments of a call say, whatever the function.
struct Arguments {
  std::uint64_t count = 0;
  abi::Comm comm = nullptr;
  abi::Stream stream = nullptr;
  std::int32_t root_or_peer = -1;
  flight::DType dtype = flight::DType::kNone;
  flight::ReduceOp reduce_op = flight::ReduceOp::kNone;
};

flight::DType dtype_of(abi::DataType type);
flight::ReduceOp reduce_op_of(abi::RedOp op);

// Each argument by its type; those of other types say nothing.
inline void take(Arguments& to, abi::Count count) { to.count = static_cast<std::uint64_t>(count); }
inline void take(Arguments& to, abi::Comm comm) { to.comm = comm; }
inline void take(Arguments& to, abi::Stream stream) { to.stream = stream; }
inline void take(Arguments& to, abi::Root root) { to.root_or_peer = static_cast<std::int32_t>(root); }
inline void take(Arguments& to, abi::Peer peer) { to.root_or_peer = static_cast<std::int32_t>(peer); }
inline void take(Arguments& to, abi::DataType type) { to.dtype = dtype_of(type); }
inline void take(Arguments& to, abi::RedOp op) { to.reduce_op = reduce_op_of(op); }
template <typename Other>
void take(Arguments&, const Other&) {}

// A call between open_call() and close_call().
struct Call {
  flight::CallRecord* record;
  std::uint64_t n;       // of the record in the ring
  std::uint64_t number;
  runtime::Mark mark;
  bool marked;           // outside a group, on a stream that is not capturing
  bool grouped;
};

// `comm`: index of the communicator, kNoComm without one; `library`: whose group the call may be in.
// `enter_ns`: when the wrapper was entered.
Call open_call(const flight::Writer& writer, Row row, const Arguments& arguments, std::uint32_t comm,
               std::uint8_t library, std::uint64_t enter_ns);

// The real function has returned `result`.
void close_call(const flight::Writer& writer, const Call& call, abi::Result result);

// NCCL took the call: it has started, or will start in the background.
constexpr bool accepted(abi::Result result) {
  return result == abi::Result::kSuccess || result == abi::Result::kInProgress;
}

}  // namespace dshang::interpose::calls
