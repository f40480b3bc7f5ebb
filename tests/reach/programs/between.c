// Another tool's preload: stands for ncclAllReduce and cudaMalloc, counts, and hands on to the next one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static int reduces, mallocs;

__attribute__((visibility("default"))) int BETWEEN_REDUCES(void) { return reduces; }
__attribute__((visibility("default"))) int BETWEEN_MALLOCS(void) { return mallocs; }

__attribute__((visibility("default"))) int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
                                                         void *stream) {
  static int (*next)(const void *, void *, size_t, int, int, void *, void *);
  if (!next) next = dlsym(RTLD_NEXT, "ncclAllReduce");
  ++reduces;
  return next(from, to, count, type, op, comm, stream);
}

__attribute__((visibility("default"))) int cudaMalloc(void **address, size_t bytes) {
  static int (*next)(void **, size_t);
  if (!next) next = dlsym(RTLD_NEXT, "cudaMalloc");
  ++mallocs;
  return next(address, bytes);
}
