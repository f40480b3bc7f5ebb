#include "interpose/runtime/ledger.h"

#include "core/flight/hash.h"

namespace dshang::interpose {
namespace {

// Addresses are multiples of at least 256.
std::size_t first_slot(std::uint64_t key) {
  return static_cast<std::size_t>(flight::mix(flight::kFnvOffset, key >> 8 ^ key << 40)) % Ledger::kSlots;
}

}  // namespace

void Ledger::fill(Slot& slot, const Allocation& allocation) {
  slot.packed.store(allocation.bytes << 16 | std::uint64_t{allocation.epoch} << 8 |
                        static_cast<std::uint64_t>(allocation.kind),
                    std::memory_order_relaxed);
  slot.extra.store(allocation.extra, std::memory_order_relaxed);
  slot.references.store(1, std::memory_order_relaxed);
}

Allocation Ledger::read(const Slot& slot) {
  std::uint64_t packed = slot.packed.load(std::memory_order_relaxed);
  Allocation allocation;
  allocation.bytes = packed >> 16;
  allocation.epoch = static_cast<std::uint8_t>(packed >> 8);
  allocation.kind = static_cast<flight::MemoryKind>(packed & 0xff);
  allocation.extra = slot.extra.load(std::memory_order_relaxed);
  return allocation;
}

const Ledger::Slot* Ledger::slot_of(std::uint64_t key) const {
  std::size_t at = first_slot(key);
  for (unsigned probe = 0; probe < kProbes; ++probe) {
    const Slot& slot = slots_[(at + probe) % kSlots];
    std::uint64_t found = slot.key.load(std::memory_order_acquire);
    if (found == key) return &slot;
    if (found == kEmpty) return nullptr;
  }
  return nullptr;
}

Ledger::Slot* Ledger::slot_of(std::uint64_t key) {
  return const_cast<Slot*>(static_cast<const Ledger*>(this)->slot_of(key));
}

bool Ledger::put(std::uint64_t key, const Allocation& allocation, bool* replaced, Allocation* old) {
  *replaced = false;
  if (Slot* slot = slot_of(key)) {
    *replaced = true;
    *old = read(*slot);
    fill(*slot, allocation);
    return true;
  }
  std::size_t at = first_slot(key);
  for (unsigned probe = 0; probe < kProbes; ++probe) {
    Slot& slot = slots_[(at + probe) % kSlots];
    std::uint64_t found = slot.key.load(std::memory_order_acquire);
    if (found != kEmpty && found != kRemoved) continue;
    if (!slot.key.compare_exchange_strong(found, kBusy, std::memory_order_acq_rel)) continue;
    fill(slot, allocation);
    slot.key.store(key, std::memory_order_release);
    return true;
  }
  return false;
}

bool Ledger::find(std::uint64_t key, Allocation* allocation) const {
  const Slot* slot = slot_of(key);
  if (!slot) return false;
  *allocation = read(*slot);
  return true;
}

bool Ledger::take(std::uint64_t key, Allocation* allocation) {
  Slot* slot = slot_of(key);
  if (!slot) return false;
  Allocation found = read(*slot);
  // Of two that give the same address back (the host's mistake) one wins.
  if (!slot->key.compare_exchange_strong(key, kRemoved, std::memory_order_acq_rel)) return false;
  *allocation = found;
  return true;
}

std::uint32_t Ledger::add_reference(std::uint64_t key) {
  Slot* slot = slot_of(key);
  return slot ? slot->references.fetch_add(1, std::memory_order_acq_rel) : 0;
}

std::uint32_t Ledger::drop_reference(std::uint64_t key) {
  Slot* slot = slot_of(key);
  return slot ? slot->references.fetch_sub(1, std::memory_order_acq_rel) : 0;
}

}  // namespace dshang::interpose
