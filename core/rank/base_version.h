// References to the first version that a function of libc ever had, so that the library starts on every glibc:
//
//   extern "C" [[gnu::weak]] void* own_dlsym(void*, const char*);
//   DSHANG_STANDS_FOR(own_dlsym, dlsym);
//
// A name of the file's own for each, so that the version holds for this file alone; null where libc has no such function.
#pragma once

#if defined(__x86_64__)
#define DSHANG_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define DSHANG_FIRST_GLIBC "GLIBC_2.17"
#else
#error "dshang runs on x86-64 and aarch64"
#endif

#ifdef DSHANG_UNVERSIONED
// LLD refuses weak references that have a version.  One without is bound to the default version, if there is one.
#define DSHANG_STANDS_FOR(own, name) __asm__(".weak " #name "\n.set " #own ", " #name)
#else
#define DSHANG_STANDS_FOR(own, name) __asm__(".symver " #own ", " #name "@" DSHANG_FIRST_GLIBC)
#endif
