/* What a training program may tell dshang.  Exported by libdshang.so; usable from C, C++, Python (ctypes), ...
 *
 * A program that never calls these loses names in reports, not findings.  DeepSpeed programs under Python need none of
 * them.  All functions may be called at any time by any thread, also before the first communicator exists and with
 * null pointers; they never fail, block or allocate, and preserve errno.
 *
 * Without the preload the functions do not exist.  A program that also runs without it declares them weak
 * (DSHANG_WEAK before the include) and asks `if (dshang_step) dshang_step(n);`. */
#ifndef DSHANG_H
#define DSHANG_H

#include <stdint.h>

#ifdef DSHANG_WEAK
#define DSHANG_API __attribute__((visibility("default"), weak))
#else
#define DSHANG_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* This rank begins training step `step`. */
DSHANG_API void dshang_step(int64_t step);

/* Phase stack of the calling thread: "forward", "backward", "optimizer", "save", "eval", ... */
DSHANG_API void dshang_phase_push(const char *name);
DSHANG_API void dshang_phase_pop(void);

/* Module stack of the calling thread. */
DSHANG_API void dshang_module_push(const char *name);
DSHANG_API void dshang_module_pop(void);

/* A fact about this rank that is compared across ranks: dataset length, seed, ... */
DSHANG_API void dshang_note(const char *key, const char *value);

#ifdef __cplusplus
}
#endif

#endif
