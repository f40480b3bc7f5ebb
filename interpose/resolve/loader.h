// The loader's lookups that the resolver needs.  Every function reports failure where the process has no libdl
// (glibc before 2.34, a program that links none): see runtime/libc_base.h.
#pragma once

namespace dshang::interpose::resolve {

// What the program would have found without dshang in the global scope: dlsym(RTLD_NEXT).  null = nothing.
void* next_in_scope(const char* name);

// What dlsym() finds in the object that contains `address` and in its dependencies.
void* in_scope_of(const void* address, const char* name);

// What dlsym() finds in a library that is loaded already under this name (SONAME or path).
void* in_loaded(const char* library, const char* name);

// Loads a library that is not loaded yet (dlopen).  False = not found.
bool load(const char* library);

// Keeps the object that contains `address` mapped for good: its functions are remembered.
void pin(const void* address);

}  // namespace dshang::interpose::resolve
