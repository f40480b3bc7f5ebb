#include "interpose/nvtx/loader.h"

#include <dlfcn.h>

#include "core/rank/base_version.h"

extern "C" {
[[gnu::weak]] void* dshang_nvtx_dlopen(const char*, int);
[[gnu::weak]] void* dshang_nvtx_dlsym(void*, const char*);
}
DSHANG_STANDS_FOR(dshang_nvtx_dlopen, dlopen);
DSHANG_STANDS_FOR(dshang_nvtx_dlsym, dlsym);

namespace dshang::nvtx {

void* open_library(const char* path) {
  return dshang_nvtx_dlopen ? dshang_nvtx_dlopen(path, RTLD_LAZY) : nullptr;
}

void* symbol_of(void* library, const char* name) {
  return dshang_nvtx_dlsym ? dshang_nvtx_dlsym(library, name) : nullptr;
}

}  // namespace dshang::nvtx
