// The real functions behind the wrapped ones.
//
// Which library: what the loader would have bound the caller to without dshang, in this order: the next definition in
// the global scope (dlsym RTLD_NEXT; another preload, libsimcuda.so, a linked library), the scope of the calling object
// (a library it depends on, also when opened RTLD_LOCAL; NCCL linked statically into it), a loaded library of the usual
// name, any loaded object that defines the function.  The caller's scope comes first where the caller was loaded before
// what the global scope has now.  RTLD_NEXT alone finds nothing with pip wheels.  If the process has no NCCL at all,
// DSHANG_NCCL_LIB or libnccl.so.2 is loaded once.  Inside the chosen library `pncclX` is preferred to `ncclX`.  An
// address inside libdshang.so, or in front of it, is never accepted.
//
// A process may hold two NCCLs: the choice is made by caller and remembered; a communicator keeps its library.
//
// Threads: any.  The first lookup of a function takes the loader's lock; later ones are one or two loads.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/symbols/rows.h"

namespace dshang::interpose::resolve {

using LibraryId = std::uint8_t;
inline constexpr LibraryId kNextInScope = 0;  // each function is the next definition in the global scope
inline constexpr unsigned kLibraries = 8;
inline constexpr LibraryId kNoLibrary = 255;

struct Found {
  void* function;     // null = missing
  LibraryId library;
};

// The real function for a call made from `caller` (a return address).
Found by_caller(Row row, const void* caller);

// The real function inside the library that by_caller() chose earlier; null = that library has none.
void* in_library(Row row, LibraryId library);

// The same where it was looked up before; null = it was not.  Async-signal-safe.
void* found_already(Row row, LibraryId library);

// The library that holds a real function; kNoLibrary = there are too many.
LibraryId library_holding(const char* name, const void* function);

// Any function of a library by name, wrapped or not; null = none.  Not for the recorded path.
void* named(LibraryId library, const char* name);

// What the process would have without dshang under this name; null = not loaded.
void* anywhere(const char* name);

// Whether by_caller() was ever asked for a function of NCCL, or note_nccl() called, as for a call that needs no lookup.
bool nccl_seen();
void note_nccl();

}  // namespace dshang::interpose::resolve
