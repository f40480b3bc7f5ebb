// The few libc functions that moved between libraries or got a new symbol version over the years.
//
// They are weak references bound to the first version there ever was, so that the preload starts on every
// libc from 2.28 on (x86-64: GLIBC_2.2.5, aarch64: GLIBC_2.17); where one is absent, the function here
// reports failure.
//
// Threads: any.
#pragma once

#include <cstdint>

namespace dshang::rank {

// dlsym(RTLD_DEFAULT, name); null = no such symbol, or no dlsym in this process.
void* find_symbol(const char* name);

// Starts a detached thread that blocks every signal.  False = no thread could be started.
bool start_thread(void* (*body)(void*), void* argument);

// pthread_self() as the number that CPython keeps in a thread state; 0 = not available.
std::uint64_t thread_handle();

std::uint32_t kernel_thread_id();
std::uint64_t now_ns();  // CLOCK_MONOTONIC
void sleep_ms(unsigned ms);

}  // namespace dshang::rank
