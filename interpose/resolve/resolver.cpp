#include "interpose/resolve/resolver.h"

#include <stdlib.h>
#include <string.h>

#include "core/rank/param.h"
#include "interpose/resolve/elf.h"
#include "interpose/resolve/loader.h"
#include "interpose/runtime/log.h"

DSHANG_PARAM(string, NCCL_LIB, "", "path or name of a library",
             "the NCCL to load where the process has none; empty: libnccl.so.2");

namespace dshang::interpose::resolve {
namespace {

constexpr std::uintptr_t kUnknown = 0, kMissing = 1;
std::atomic<std::uintptr_t> functions[kLibraries][kRows];

// Where the mapping of each library begins, kNextInScope left out; 0 = unused.
std::atomic<std::uintptr_t> mappings[kLibraries];

// Which library serves a caller: return address << 8 | library, one word so that it is never read half.
constexpr unsigned kCallers = 512;
std::atomic<std::uint64_t> callers[kCallers];

std::atomic<bool> nccl_was_seen{false};

constexpr const char* kCudaNames[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};

std::atomic<std::uint64_t>& caller_slot(const void* caller) {
  auto at = reinterpret_cast<std::uint64_t>(caller);
  return callers[(at * 0x9e3779b97f4a7c15ull) >> 55];
}

// What is in front of libdshang.so leads back to it.
const void* accepted(const void* function) {
  return function && !is_own(function) && !in_front(function) ? function : nullptr;
}

// NCCL's `pncclX` is `ncclX` under a name that nobody interposes.
void* preferred(const Object& object, Family family, const char* name) {
  char profiled[64] = "p";
  if (family == Family::kNccl && strlen(name) < sizeof profiled - 1) {
    strcpy(profiled + 1, name);
    if (void* function = defined_function(object, profiled)) return function;
  }
  return defined_function(object, name);
}

// Another preload that wraps some functions of NCCL itself is no NCCL: every call has to go through it.
void* another_wrapper(Family family, const char* name) {
  if (family != Family::kNccl) return nullptr;
  const void* next = accepted(next_in_scope(name));
  Object object;
  if (!next || !object_of(next, &object) || defined_function(object, "ncclGetErrorString")) return nullptr;
  return const_cast<void*>(next);
}

LibraryId library_at(const Object& object) {
  for (unsigned id = kNextInScope + 1; id < kLibraries; ++id) {
    std::uintptr_t found = mappings[id].load(std::memory_order_acquire);
    if (found == 0 && mappings[id].compare_exchange_strong(found, object.begin, std::memory_order_acq_rel)) {
      pin(reinterpret_cast<const void*>(object.begin));
      return static_cast<LibraryId>(id);
    }
    if (found == object.begin) return static_cast<LibraryId>(id);
  }
  DSHANG_LOG_ONCE("more than %u libraries with NCCL or CUDA functions; the last are not told apart", kLibraries - 1);
  return kNoLibrary;
}

LibraryId library_of(const void* function) {
  Object object;
  return function && object_of(function, &object) ? library_at(object) : kNoLibrary;
}

LibraryId loaded_under_usual_name(Family family, const char* name) {
  if (family == Family::kNccl) return library_of(accepted(in_loaded("libnccl.so.2", name)));
  for (const char* library : kCudaNames) {
    LibraryId id = library_of(accepted(in_loaded(library, name)));
    if (id != kNoLibrary) return id;
  }
  return kNoLibrary;
}

LibraryId any_object(const char* name) {
  Object object;
  return object_defining(name, &object) ? library_at(object) : kNoLibrary;
}

bool load_nccl_once() {
  static std::atomic<bool> tried{false};
  if (tried.exchange(true)) return false;
  const char* named = param_NCCL_LIB.value();
  return load(*named ? named : "libnccl.so.2");
}

// Of a caller that was loaded, and so bound to its own library, before another one was opened RTLD_GLOBAL.
bool bound_to_its_own(const void* caller, const void* own, const void* next) {
  return own && own != next && loaded_before(caller, next);
}

LibraryId choose(Row row, const void* caller) {
  const char* name = info(row).name;
  Family family = info(row).family;
  const void* next = accepted(next_in_scope(name));
  const void* own = accepted(in_scope_of(caller, name));
  if (next && !bound_to_its_own(caller, own, next)) return kNextInScope;
  LibraryId id = library_of(own);
  if (id == kNoLibrary) id = loaded_under_usual_name(family, name);
  if (id == kNoLibrary) id = any_object(name);
  if (id == kNoLibrary && family == Family::kNccl && load_nccl_once()) {
    id = loaded_under_usual_name(family, name);
    if (id == kNoLibrary) id = any_object(name);
  }
  return id;
}

void* find(LibraryId library, Family family, const char* name) {
  Object object;
  if (library == kNextInScope) {
    const void* next = accepted(next_in_scope(name));
    if (!next || !object_of(next, &object)) return const_cast<void*>(next);
    void* function = preferred(object, family, name);
    // Versioned libraries may define a name several times; the loader knows which one is meant.
    return function && family == Family::kNccl ? function : const_cast<void*>(next);
  }
  if (void* other = another_wrapper(family, name)) return other;
  std::uintptr_t begin = mappings[library].load(std::memory_order_acquire);
  if (!begin || !object_of(reinterpret_cast<const void*>(begin), &object)) return nullptr;
  return const_cast<void*>(accepted(preferred(object, family, name)));
}

}  // namespace

void* in_library(Row row, LibraryId library) {
  if (library >= kLibraries) return nullptr;
  std::atomic<std::uintptr_t>& slot = functions[library][index(row)];
  std::uintptr_t function = slot.load(std::memory_order_acquire);
  if (function == kUnknown) {
    function = reinterpret_cast<std::uintptr_t>(find(library, info(row).family, info(row).name));
    // The global scope grows (dlopen RTLD_GLOBAL); a library does not.
    if (function || library != kNextInScope) slot.store(function ? function : kMissing, std::memory_order_release);
  }
  return function > kMissing ? reinterpret_cast<void*>(function) : nullptr;
}

void* found_already(Row row, LibraryId library) {
  std::uintptr_t function = functions[library][index(row)].load(std::memory_order_acquire);
  return function > kMissing ? reinterpret_cast<void*>(function) : nullptr;
}

Found by_caller(Row row, const void* caller) {
  auto at = reinterpret_cast<std::uint64_t>(caller);
  std::atomic<std::uint64_t>& slot = caller_slot(caller);
  std::uint64_t remembered = slot.load(std::memory_order_relaxed);
  if (remembered >> 8 == at) {
    auto library = static_cast<LibraryId>(remembered & 255);
    if (void* function = in_library(row, library)) return {function, library};
  }
  if (info(row).family == Family::kNccl) note_nccl();
  LibraryId library = choose(row, caller);
  void* function = in_library(row, library);
  if (!function) return {nullptr, kNoLibrary};
  slot.store(at << 8 | library, std::memory_order_relaxed);
  return {function, library};
}

LibraryId library_holding(const char* name, const void* function) {
  return accepted(next_in_scope(name)) == function ? kNextInScope : library_of(function);
}

void* named(LibraryId library, const char* name) {
  Family family = strncmp(name, "nccl", 4) == 0 ? Family::kNccl : Family::kCuda;
  return library < kLibraries ? find(library, family, name) : nullptr;
}

void* anywhere(const char* name) {
  if (const void* next = accepted(next_in_scope(name))) return const_cast<void*>(next);
  Object object;
  return object_defining(name, &object) ? defined_function(object, name) : nullptr;
}

void note_nccl() { nccl_was_seen.store(true, std::memory_order_relaxed); }
bool nccl_seen() { return nccl_was_seen.load(std::memory_order_relaxed); }

}  // namespace dshang::interpose::resolve
