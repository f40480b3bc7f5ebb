// The identity of a communicator: equal on all members, unequal otherwise.
//
// Pure functions.  What NCCL itself hashes is given where it can be computed, so that its own output can be joined.
#pragma once

#include <cstdint>

#include "interpose/symbols/types.h"

namespace dshang::interpose::comms {

// ncclCommInitRank: the unique id and the size.  `repeat`: how many communicators this process made before with the
// same id, size and rank (NCCL_COMM_ID makes all ids equal).
std::uint64_t init_id(const abi::UniqueId& unique_id, int size, std::uint32_t repeat);

// What NCCL calls commHash: DJB2a over the 128 bytes (nccl: src/misc/utils.cc, getHash).
std::uint64_t nccl_hash(const abi::UniqueId& unique_id);

// ncclCommInitAll lives in one process: `process` tells it from all others, `ordinal` from its other ones.
std::uint64_t init_all_id(std::uint64_t process, std::uint32_t ordinal, int size);

// `ordinal`: of the split on its parent, counted with those without colour.  0 for a split without colour.
std::uint64_t split_id(std::uint64_t parent, std::uint64_t ordinal, int color);

// The order of the exclude list does not matter.
std::uint64_t shrink_id(std::uint64_t parent, std::uint64_t ordinal, const int* excluded, int excluded_count);

// On members that know the parent only; those that know the unique id have init_id().
std::uint64_t grow_id(std::uint64_t parent, std::uint64_t ordinal, int size);

// A communicator whose creation was not seen: equal to no other.
std::uint64_t unknown_id(std::uint64_t process, std::uint64_t handle, std::uint32_t ordinal);

}  // namespace dshang::interpose::comms
