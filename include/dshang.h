/* What a training program may tell dshang.  Exported by libdshang.so; usable from C, C++, Python (ctypes), ...
 *
 * A program that never calls these loses names in reports, not findings.  DeepSpeed programs under Python need none of
 * them.  All functions may be called at any time by any thread, also before the first communicator exists and with
 * null pointers; they never fail, block or allocate, and preserve errno.
 *
 * Without the preload the functions do not exist.  A program that also runs without it declares them weak
 * (DSHANG_WEAK before the include) and asks `if (dshang_step) dshang_step(n);` (examples/annotated.c).  It must be
 * position independent, as compilers make it by default (-fPIE, -fPIC): else the linker answers the question, with no.
 *
 * Threads: the stacks below belong to the calling thread.  A thread without a phase of its own (PyTorch's backward
 * thread) is in the phase of the process: the newest of the main thread and of threads that announced a step.  Modules
 * are not inherited.  The step belongs to the process.
 *
 * Names are copied.  They should be the same on all ranks and of a limited number: steps belong into dshang_step, not
 * into names.  The first 4096 bytes are kept; of what is said before the process makes its first communicator (or sets
 * its device, as a rank of a job) the first 119, of 128 names and 64 notes.
 *
 * Nesting: what is innermost is reported.  Deeper than 64 names of one kind a thread is in no phase (module) that has a
 * name; they are counted, so that their ends still fit.  An end without a beginning is ignored.  A beginning without an
 * end stays: in programs with exceptions let a destructor say the end. */
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

/* A fact about this rank, kept in its flight memory.  Compared across ranks are loader_length and dataset_length (whole
 * numbers, of batches and samples), and versions: torch_version, deepspeed_version, nccl_version, cuda_version, ...
 * What differs by design (seeds, devices) never is. */
DSHANG_API void dshang_note(const char *key, const char *value);

#ifdef __cplusplus
}
#endif

#endif
