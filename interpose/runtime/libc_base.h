// What the wrappers and the runtime need of the loader and of the kernel, beyond core/rank/base_libc.h.
//
// dl* are weak references bound to the first version there ever was, so that the preload starts on every
// libc; where one is absent the function here reports failure.  System calls are made by number where libc's
// wrapper is younger than the oldest libc that dshang starts on, or is itself wrapped.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dshang::interpose::libc {

// dlsym(); null if there is no dlsym or no such symbol.  RTLD_NEXT means: after libdshang.so.
void* lookup(void* handle, const char* name);

// dlopen(name, RTLD_LAZY | RTLD_NOLOAD); null if the library is not loaded.
void* loaded_library(const char* name);

// Path of the loaded object that contains `address` as the loader knows it; null = unknown.
const char* object_of(const void* address);

// pthread_atfork(); false = could not be registered.
bool at_fork(void (*prepare)(), void (*parent)(), void (*child)());

int process_id();         // from the kernel, never cached
int open_pidfd(int pid);  // -1 on failure, errno set
bool file_identity(int fd, std::uint64_t* device, std::uint64_t* inode);

}  // namespace dshang::interpose::libc
