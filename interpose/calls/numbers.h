// Call numbers: k, counted from 1.
//
// Collectives are counted on their communicator, sends and receives per (communicator, peer, direction), life-cycle
// calls per (communicator, op).  Only calls that NCCL accepted count: take_number() at entry, give_back() when NCCL
// rejects the call or its group.  A communicator is used by one thread at a time (NCCL's rule), so that nothing comes
// between.
//
// Threads: any.  No lock, no allocation; a fixed table.  Failure: number 0 = not counted (table full, one-sided op,
// communicator without an entry).
#pragma once

#include <cstdint>

#include "core/flight/writer.h"

namespace dshang::interpose::calls {

inline constexpr std::uint32_t kNoComm = UINT32_MAX;  // CallRecord::comm of a communicator that found no entry

std::uint64_t take_number(const flight::Writer& writer, std::uint32_t comm, std::uint8_t op, std::int32_t peer);
void give_back(const flight::Writer& writer, std::uint32_t comm, std::uint8_t op, std::int32_t peer);

// A new flight memory: everything counts from 1 again.
void forget_numbers();

}  // namespace dshang::interpose::calls
