// Answers about the current device for the wrappers (api.h), and the driver functions that they hand out.
#include <string.h>

#include "core/rank/base_libc.h"
#include "interpose/runtime/api.h"
#include "interpose/runtime/driver.h"
#include "interpose/runtime/memory.h"

namespace dshang::interpose::runtime {
namespace {

// Head of CUmemAllocationProp (cuda.h): allocation type, handle types, location type, location id.
struct AllocationProperties {
  int type, handle_types, location_type, location_id;
};
constexpr int kLocationDevice = 1;  // CU_MEM_LOCATION_TYPE_DEVICE

using MemCreate = int (*)(unsigned long long*, std::size_t, const AllocationProperties*, unsigned long long);
using MemRelease = int (*)(unsigned long long);
using MemMap = int (*)(unsigned long long, std::size_t, std::size_t, unsigned long long, unsigned long long);
using MemUnmap = int (*)(unsigned long long, std::size_t);

std::atomic<MemCreate> real_create;
std::atomic<MemRelease> real_release;
std::atomic<MemMap> real_map;
std::atomic<MemUnmap> real_unmap;

// Times a call that took or gave back memory.
class Timed {
 public:
  Timed() : since_ns_(recorder() ? rank::now_ns() : 0) {}
  ~Timed() {
    if (since_ns_) memory_call(since_ns_, rank::now_ns());
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  std::uint64_t since_ns_;
};

int mem_create(unsigned long long* handle, std::size_t bytes, const AllocationProperties* properties,
               unsigned long long flags) {
  if (!recorder()) wake(WakeReason::kAllocation);
  Timed timed;
  MemoryChange change;
  int result = real_create.load(std::memory_order_acquire)(handle, bytes, properties, flags);
  bool on_device = properties && properties->location_type == kLocationDevice;
  if (result == driver::kSuccess) {
    memory::physical_created(*handle, bytes, on_device);
  } else {
    allocation_failed(on_device ? flight::MemoryKind::kVirtual : flight::MemoryKind::kHost, bytes, result);
  }
  return result;
}

int mem_release(unsigned long long handle) {
  Timed timed;
  MemoryChange change;
  memory::physical_released(handle);
  return real_release.load(std::memory_order_acquire)(handle);
}

int mem_map(unsigned long long address, std::size_t bytes, std::size_t offset, unsigned long long handle,
            unsigned long long flags) {
  Timed timed;
  int result = real_map.load(std::memory_order_acquire)(address, bytes, offset, handle, flags);
  if (result == driver::kSuccess) memory::physical_mapped(address, bytes, handle);
  return result;
}

int mem_unmap(unsigned long long address, std::size_t bytes) {
  Timed timed;
  MemoryChange change;
  memory::range_unmapped(address, bytes);
  return real_unmap.load(std::memory_order_acquire)(address, bytes);
}

template <typename Function>
void* replace(std::atomic<Function>& real_slot, Function replacement, void* real) {
  if (real != reinterpret_cast<void*>(replacement)) {
    real_slot.store(reinterpret_cast<Function>(real), std::memory_order_release);
  }
  return reinterpret_cast<void*>(replacement);
}

// cuGetProcAddress, of which a process may be given two by one name: the older has no last parameter.
using GetProcAddress = int (*)(const char*, void**, int, unsigned long long, int*);
std::atomic<void*> real_get_proc_address[2];

template <unsigned N>
int get_proc_address(const char* name, void** function, int version, unsigned long long flags, int* status) {
  auto real = reinterpret_cast<GetProcAddress>(real_get_proc_address[N].load(std::memory_order_acquire));
  int result = real(name, function, version, flags, status);
  if (result == driver::kSuccess && function) *function = replace_driver_entry(name, *function);
  return result;
}

void* replace_get_proc_address(void* real) {
  constexpr GetProcAddress kReplacements[] = {&get_proc_address<0>, &get_proc_address<1>};
  for (unsigned n = 0; n < 2; ++n) {
    void* kept = nullptr;
    void* replacement = reinterpret_cast<void*>(kReplacements[n]);
    if (real == replacement || real_get_proc_address[n].compare_exchange_strong(kept, real, std::memory_order_acq_rel) ||
        kept == real) {
      return replacement;
    }
  }
  return real;
}

}  // namespace

bool device_memory(std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  const driver::Functions* cuda = driver::functions();
  std::size_t free_now, total;
  if (!cuda || !cuda->mem_get_info || cuda->mem_get_info(&free_now, &total) != driver::kSuccess) return false;
  *free_bytes = free_now;
  *total_bytes = total;
  return true;
}

int current_device() {
  const driver::Functions* cuda = driver::functions();
  int device;
  if (!cuda || !cuda->ctx_get_device || cuda->ctx_get_device(&device) != driver::kSuccess) return -1;
  return device;
}

void* replace_driver_entry(const char* name, void* real) {
  if (!name || !real || disabled()) return real;
  if (strcmp(name, "cuMemCreate") == 0) return replace(real_create, &mem_create, real);
  if (strcmp(name, "cuMemRelease") == 0) return replace(real_release, &mem_release, real);
  if (strcmp(name, "cuMemMap") == 0) return replace(real_map, &mem_map, real);
  if (strcmp(name, "cuMemUnmap") == 0) return replace(real_unmap, &mem_unmap, real);
  if (strcmp(name, "cuGetProcAddress") == 0) return replace_get_proc_address(real);
  return real;
}

}  // namespace dshang::interpose::runtime
