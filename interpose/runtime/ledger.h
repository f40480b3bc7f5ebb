// Which bytes belong to which address: every live allocation that a wrapper saw.
//
// Open addressing in static memory (untouched pages of a process that allocates nothing cost nothing), no
// lock, no allocation.  An address is put by the thread that got it and taken by the thread that gives it
// back; between the two lies the host's own synchronisation.
// Threads: any.  Failure: a full neighbourhood (kProbes) refuses; the caller counts it as untracked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/flight/format.h"

namespace dshang::interpose {

struct Allocation {
  std::uint64_t bytes = 0;  // below 2^48
  flight::MemoryKind kind = flight::MemoryKind::kDevice;
  std::uint8_t epoch = 0;   // a forked child does not count what its parent allocated
  std::uint64_t extra = 0;  // of a mapping: its handle
};

class Ledger {
 public:
  static constexpr std::size_t kSlots = std::size_t{1} << 17;
  static constexpr unsigned kProbes = 128;

  // False = no room.  If `key` is there already (given back by a way that no wrapper saw) it is replaced:
  // `*replaced` tells so and `*old` is what it was.  `key` is neither 0 nor 1 nor 2.
  bool put(std::uint64_t key, const Allocation& allocation, bool* replaced, Allocation* old);

  // False = unknown key.
  bool take(std::uint64_t key, Allocation* allocation);
  bool find(std::uint64_t key, Allocation* allocation) const;

  // Changes the reference count that a key is born with (1).  Returns what it was before the change, 0 =
  // unknown key.
  std::uint32_t add_reference(std::uint64_t key);
  std::uint32_t drop_reference(std::uint64_t key);

 private:
  static constexpr std::uint64_t kEmpty = 0, kRemoved = 1, kBusy = 2;
  struct Slot {
    std::atomic<std::uint64_t> key;
    std::atomic<std::uint64_t> packed;  // bytes << 16 | epoch << 8 | kind
    std::atomic<std::uint64_t> extra;
    std::atomic<std::uint32_t> references;
  };
  const Slot* slot_of(std::uint64_t key) const;
  Slot* slot_of(std::uint64_t key);
  static void fill(Slot& slot, const Allocation& allocation);
  static Allocation read(const Slot& slot);

  Slot slots_[kSlots];
};

}  // namespace dshang::interpose
