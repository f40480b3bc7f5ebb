#include "interpose/resolve/loader.h"

#include <dlfcn.h>

#include "core/rank/base_version.h"
#include "interpose/runtime/libc_base.h"

// Names of our own for weak references to the first version there ever was (runtime/libc_base.h says why).
extern "C" {
[[gnu::weak]] void* dshang_base_dlopen(const char*, int);
[[gnu::weak]] int dshang_base_dlclose(void*);
}
DSHANG_STANDS_FOR(dshang_base_dlopen, dlopen);
DSHANG_STANDS_FOR(dshang_base_dlclose, dlclose);

namespace dshang::interpose::resolve {
namespace {

void* open(const char* library, int mode) {
  return dshang_base_dlopen && dshang_base_dlclose ? dshang_base_dlopen(library, mode) : nullptr;
}

// The reference that the lookup takes is given back: the host decides how long its libraries live.
void* look_up_and_close(void* handle, const char* name) {
  if (!handle) return nullptr;
  void* found = libc::lookup(handle, name);
  dshang_base_dlclose(handle);
  return found;
}

}  // namespace

void* next_in_scope(const char* name) { return libc::lookup(RTLD_NEXT, name); }

void* in_scope_of(const void* address, const char* name) {
  const char* path = libc::object_of(address);
  return path ? look_up_and_close(open(path, RTLD_LAZY | RTLD_NOLOAD), name) : nullptr;
}

void* in_loaded(const char* library, const char* name) {
  return look_up_and_close(open(library, RTLD_LAZY | RTLD_NOLOAD), name);
}

bool load(const char* library) { return open(library, RTLD_LAZY | RTLD_LOCAL) != nullptr; }

void pin(const void* address) {
  if (const char* path = libc::object_of(address)) open(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace dshang::interpose::resolve
