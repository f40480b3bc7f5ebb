// Which lookups of symbols are answered here: those of NCCL's functions on a handle.  All others go on to the loader's own
// dlsym() without a lock and without an allocation.
#include <dlfcn.h>
#include <string.h>

#include "core/rank/base_version.h"

extern "C" {
// Weak, and of the first version there ever was (core/rank/base_version.h).
[[gnu::weak]] void* dshang_dlsym_dlvsym(void*, const char*, const char*);
// libdshang.so's; null where it is not preloaded.
[[gnu::weak]] void* dshang_symbol_asked(const char* name, void* real, const void* caller);
}
DSHANG_STANDS_FOR(dshang_dlsym_dlvsym, dlvsym);

namespace {

using Dlsym = void* (*)(void* handle, const char* name);

void* nothing(void*, const char*) { return nullptr; }

// Found when it is needed: other libraries look symbols up before this one's constructors would run.
Dlsym real() {
  static Dlsym known;
  Dlsym found = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (found) return found;
  if (!dshang_dlsym_dlvsym) return nothing;
  found = reinterpret_cast<Dlsym>(dshang_dlsym_dlvsym(RTLD_NEXT, "dlsym", DSHANG_FIRST_GLIBC));
  if (!found) return nothing;
  __atomic_store_n(&known, found, __ATOMIC_RELAXED);
  return found;
}

bool is_nccl(const char* name) {
  if (*name == 'p') ++name;
  return strncmp(name, "nccl", 4) == 0;
}

// `handle` is no scope that depends on the caller.
void* answer(void* handle, const char* name, const void* caller) {
  void* found = real()(handle, name);
  return found && dshang_symbol_asked ? dshang_symbol_asked(name, found, caller) : found;
}

}  // namespace

// Called by dlsym() in entry.cpp.
extern "C" void* dshang_dlsym_route(void* handle, const char* name) {
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || !name || !is_nccl(name)) return reinterpret_cast<void*>(real());
  return reinterpret_cast<void*>(&answer);
}
