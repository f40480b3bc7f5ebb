#include "interpose/nvtx/handles.h"

namespace dshang::nvtx {

void Handles::note(const void* handle, const char* value) {
  if (!handle) return;
  for (Entry& entry : entries_) {
    const void* known = entry.handle.load(std::memory_order_acquire);
    if (!known) {
      if (!value) return;
      if (!entry.handle.compare_exchange_strong(known, handle, std::memory_order_acq_rel) && known != handle)
        continue;
      known = handle;
    }
    if (known == handle) return entry.value.store(value, std::memory_order_release);
  }
}

const char* Handles::find(const void* handle) const {
  for (const Entry& entry : entries_) {
    const void* known = entry.handle.load(std::memory_order_acquire);
    if (!known) return nullptr;
    if (known == handle) return entry.value.load(std::memory_order_acquire);
  }
  return nullptr;
}

const void* Handles::own(const char* value) {
  for (Entry& entry : entries_) {
    const void* known = entry.handle.load(std::memory_order_acquire);
    if (known == &entry && entry.value.load(std::memory_order_acquire) == value) return &entry;
    if (known || !entry.handle.compare_exchange_strong(known, &entry, std::memory_order_acq_rel)) continue;
    entry.value.store(value, std::memory_order_release);
    return &entry;
  }
  return nullptr;
}

Handles domains, strings;

std::uint32_t domain_of(const void* handle) {
  if (!handle) return static_cast<std::uint32_t>(rank::RangeDomain::kDefault);
  return domains.find(handle) ? static_cast<std::uint32_t>(rank::RangeDomain::kDeepSpeed) : kNoDomain;
}

}  // namespace dshang::nvtx
