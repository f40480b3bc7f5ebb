// dlopen() and dlsym() by the first versions there ever were, so that the library loads on every libc
// (interpose/runtime/libc_base.h says why); where one is absent these fail.
#pragma once

namespace dshang::nvtx {

void* open_library(const char* path);
void* symbol_of(void* library, const char* name);

}  // namespace dshang::nvtx
