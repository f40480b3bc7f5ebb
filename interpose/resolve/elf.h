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

// Whether the object that holds `first` was loaded before the one that holds `second`.  False where they are the same, or one
// of them is unknown.
bool loaded_before(const void* first, const void* second);

// Whether the object that holds `address` is in front of libdshang.so: the program, another tool that was preloaded before.
bool in_front(const void* address);

// The first object behind libdshang.so in load order that defines `name`.
bool object_defining(const char* name, Object* object);

// Whether `address` lies in libdshang.so itself.
bool is_own(const void* address);

}  // namespace dshang::interpose::resolve
