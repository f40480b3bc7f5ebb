// The few libc functions that moved between libraries or got a new symbol version over the years.
//
// A preload that needs a newer libc than the machine has stops every process.  So pthread_* and dl* are weak
// references bound to the first version there ever was (libc_base.cpp); where one is absent (a program without
// libpthread on glibc before 2.34) the function here reports failure and the process stays inert.
//
// Threads: any.  Failure: as said at each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dshang::interpose::libc {

// Starts a detached thread that blocks every signal.  False = no thread could be started.
bool start_thread(void* (*body)(void*), void* argument);

// dlsym(); null if there is no dlsym or no such symbol.  RTLD_NEXT means: after libdshang.so.
void* lookup(void* handle, const char* name);

// dlopen(name, RTLD_LAZY | RTLD_NOLOAD); null if the library is not loaded.
void* loaded_library(const char* name);

// Path of the loaded object that contains `address` as the loader knows it; null = unknown.
const char* object_of(const void* address);

// pthread_atfork(); false = could not be registered.
bool at_fork(void (*prepare)(), void (*parent)(), void (*child)());

// System calls whose libc wrappers are younger than our oldest libc, or that must not be intercepted.
std::uint32_t thread_id();
int process_id();                       // from the kernel, never cached
int open_pidfd(int pid);                // -1 on failure, errno set
bool file_identity(int fd, std::uint64_t* device, std::uint64_t* inode);

}  // namespace dshang::interpose::libc
