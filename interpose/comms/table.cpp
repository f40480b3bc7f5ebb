#include "interpose/comms/table.h"

#include <sched.h>

#include "interpose/runtime/log.h"

namespace dshang::interpose::comms {
namespace {

constexpr std::uint64_t kFree = 0, kRemoved = 1;
Live table[kLive];
std::atomic<bool> locked{false};

class Lock {
 public:
  Lock() {
    while (locked.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  ~Lock() { locked.store(false, std::memory_order_release); }
};

unsigned place_of(std::uint64_t handle) { return static_cast<unsigned>((handle * 0x9e3779b97f4a7c15ull) >> 52); }
static_assert(kLive == 1u << 12);

Live* find(std::uint64_t handle) {
  unsigned at = place_of(handle);
  for (unsigned probe = 0; probe < kLive; ++probe, at = (at + 1) % kLive) {
    std::uint64_t found = table[at].handle.load(std::memory_order_acquire);
    if (found == handle) return &table[at];
    if (found == kFree) return nullptr;
  }
  return nullptr;
}

}  // namespace

Live* find(abi::Comm comm) {
  auto handle = reinterpret_cast<std::uint64_t>(comm);
  return handle > kRemoved ? find(handle) : nullptr;
}

Live* add(abi::Comm comm, std::uint64_t id, std::uint32_t index, resolve::LibraryId library, bool ready) {
  auto handle = reinterpret_cast<std::uint64_t>(comm);
  if (handle <= kRemoved) return nullptr;
  Lock lock;
  Live* live = find(handle);  // a handle that came back without a destroy: NCCL has given the memory out again
  unsigned at = place_of(handle);
  for (unsigned probe = 0; !live && probe < kLive; ++probe, at = (at + 1) % kLive) {
    if (table[at].handle.load(std::memory_order_relaxed) <= kRemoved) live = &table[at];
  }
  if (!live) {
    DSHANG_LOG_ONCE("more than %u communicators at a time; calls of the others are not told apart", kLive);
    return nullptr;
  }
  live->id = id;
  live->index = index;
  live->library = library;
  live->ready.store(ready, std::memory_order_relaxed);
  live->handle.store(handle, std::memory_order_release);
  return live;
}

void remove(abi::Comm comm) {
  auto handle = reinterpret_cast<std::uint64_t>(comm);
  if (handle <= kRemoved) return;
  Lock lock;
  Live* live = find(handle);
  if (!live) return;
  live->handle.store(kRemoved, std::memory_order_release);
  // Removed entries before a free one end no search: make them free again.
  unsigned at = static_cast<unsigned>(live - table);
  if (table[(at + 1) % kLive].handle.load(std::memory_order_relaxed) != kFree) return;
  while (table[at].handle.load(std::memory_order_relaxed) == kRemoved) {
    table[at].handle.store(kFree, std::memory_order_release);
    at = (at + kLive - 1) % kLive;
  }
}

void forget_all() {
  for (Live& live : table) live.handle.store(kFree, std::memory_order_relaxed);
  locked.store(false, std::memory_order_release);  // the thread that held it may be gone with the fork
}

}  // namespace dshang::interpose::comms
