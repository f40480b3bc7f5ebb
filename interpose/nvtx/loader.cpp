#include "interpose/nvtx/loader.h"

#include <dlfcn.h>

#if defined(__x86_64__)
#define DSHANG_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define DSHANG_FIRST_GLIBC "GLIBC_2.17"
#else
#error "dshang runs on x86-64 and aarch64"
#endif

extern "C" {
[[gnu::weak]] void* dshang_nvtx_dlopen(const char*, int);
[[gnu::weak]] void* dshang_nvtx_dlsym(void*, const char*);
}
__asm__(".symver dshang_nvtx_dlopen, dlopen@" DSHANG_FIRST_GLIBC);
__asm__(".symver dshang_nvtx_dlsym, dlsym@" DSHANG_FIRST_GLIBC);

namespace dshang::nvtx {

void* open_library(const char* path) {
  return dshang_nvtx_dlopen ? dshang_nvtx_dlopen(path, RTLD_LAZY) : nullptr;
}

void* symbol_of(void* library, const char* name) {
  return dshang_nvtx_dlsym ? dshang_nvtx_dlsym(library, name) : nullptr;
}

}  // namespace dshang::nvtx
