#include "simgpu/core/entry_point.h"

#include <dlfcn.h>

#include <string>

#include "simgpu/core/log.h"

namespace simgpu {
namespace {

// For a process that opened this library by hand: its names are in no global scope then.
void* own_handle() {
  static void* const kHandle = [] {
    Dl_info self;
    if (dladdr(reinterpret_cast<const void*>(&driver_entry_point), &self) == 0)
      return static_cast<void*>(nullptr);
    return dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return kHandle;
}

// The program's global scope, in the loader's order. RTLD_DEFAULT would not do: to a library linked with
// -Bsymbolic it gives its own functions first.
void* program_handle() {
  static void* const kHandle = dlopen(nullptr, RTLD_LAZY);
  return kHandle;
}

void* look_up(const std::string& name) {
  void* found = program_handle() != nullptr ? dlsym(program_handle(), name.c_str()) : nullptr;
  if (found == nullptr && own_handle() != nullptr) found = dlsym(own_handle(), name.c_str());
  return found;
}

}  // namespace

void* driver_entry_point(const char* name) {
  for (const char* version : {"_v4", "_v3", "_v2", ""}) {
    if (void* found = look_up(std::string(name) + version)) return found;
  }
  log(1, "there is no driver function %s", name);
  return nullptr;
}

}  // namespace simgpu
