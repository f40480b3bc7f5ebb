#include "interpose/runtime/libc_base.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/rank/base_version.h"

extern "C" {
[[gnu::weak]] void* dshang_base_dlsym(void*, const char*);
[[gnu::weak]] void* dshang_base_dlopen(const char*, int);
[[gnu::weak]] int dshang_base_dladdr(const void*, Dl_info*);
// pthread_atfork() is this function with the object's own handle as the last argument.
[[gnu::weak]] int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
extern void* __dso_handle __attribute__((visibility("hidden")));
}

DSHANG_STANDS_FOR(dshang_base_dlsym, dlsym);
DSHANG_STANDS_FOR(dshang_base_dlopen, dlopen);
DSHANG_STANDS_FOR(dshang_base_dladdr, dladdr);

namespace dshang::interpose::libc {

void* lookup(void* handle, const char* name) {
  return dshang_base_dlsym ? dshang_base_dlsym(handle, name) : nullptr;
}

void* loaded_library(const char* name) {
  return dshang_base_dlopen ? dshang_base_dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

const char* object_of(const void* address) {
  Dl_info info;
  if (!dshang_base_dladdr || !dshang_base_dladdr(address, &info)) return nullptr;
  return info.dli_fname;
}

bool at_fork(void (*prepare)(), void (*parent)(), void (*child)()) {
  return __register_atfork && __register_atfork(prepare, parent, child, __dso_handle) == 0;
}

int process_id() { return static_cast<int>(syscall(SYS_getpid)); }

int open_pidfd(int pid) {
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

// statx(2) by number: fstat() is a versioned symbol of glibc 2.33.
bool file_identity(int fd, std::uint64_t* device, std::uint64_t* inode) {
  struct statx info;
  if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &info) != 0) return false;
  *device = std::uint64_t{info.stx_dev_major} << 32 | info.stx_dev_minor;
  *inode = info.stx_ino;
  return true;
}

}  // namespace dshang::interpose::libc
