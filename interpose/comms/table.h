// The live communicators of this process by their handle.
//
// Threads: find() by any thread, without a lock; add(), remove() and forget_all() take a spin lock and are for
// creation and the end of a communicator.  An entry stays valid until its communicator is removed; using a
// communicator that another thread destroys is the host's mistake, and gives a stale but mapped entry.
// Limits: kLive communicators at a time; more are not found (their calls are recorded without a communicator).
#pragma once

#include <atomic>
#include <cstdint>

#include "core/flight/writer.h"
#include "interpose/resolve/resolver.h"
#include "interpose/symbols/types.h"

namespace dshang::interpose::comms {

inline constexpr unsigned kLive = 4096;

struct Live {
  std::atomic<std::uint64_t> handle;  // 0 = free, 1 = removed
  std::uint64_t id;
  std::uint32_t index;                // in flight memory; calls::kNoComm where that is full
  resolve::LibraryId library;
  std::atomic<bool> ready;            // false: created without blocking and not known to be complete
};

Live* find(abi::Comm comm);

// Null = the table is full.
Live* add(abi::Comm comm, std::uint64_t id, std::uint32_t index, resolve::LibraryId library, bool ready);

void remove(abi::Comm comm);

void forget_all();

}  // namespace dshang::interpose::comms
