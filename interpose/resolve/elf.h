// Looks up symbols in objects that the loader has mapped, without the loader's own lookup: it finds libraries that were
// opened RTLD_LOCAL, needs no handle, and never finds a wrapper instead of the real function.
//
// Threads: any; takes the loader's lock while it walks the list of objects (dl_iterate_phdr).
#pragma once

#include <cstdint>

namespace dshang::interpose::resolve {

// A mapped object, as far as lookups need it.  Valid while the object stays mapped.
struct Object {
  std::uintptr_t base = 0;              // load address
  std::uintptr_t begin = 0, end = 0;    // of its mapping
  const void* symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* sysv_hash = nullptr;

  bool holds(const void* address) const {
    auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at < end;
  }
};

// The address of the function that `object` defines under this name, whatever its version; null = none.
void* defined_function(const Object& object, const char* name);

// The object whose mapping holds `address`.
bool object_of(const void* address, Object* object);

// The first object in load order, libdshang.so left out, that defines `name`.
bool object_defining(const char* name, Object* object);

// Whether `address` lies in libdshang.so itself.
bool is_own(const void* address);

}  // namespace dshang::interpose::resolve
