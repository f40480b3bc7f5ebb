// A library that uses CUDA and NCCL by direct calls, as libtorch_cuda.so does.  CMake links it with a shared NCCL, or with one
// inside, exported or hidden.
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef struct {
  char bytes[128];
} UniqueId;
int cudaSetDevice(int);
int cudaMalloc(void **, size_t);
int cudaMemGetInfo(size_t *, size_t *);
int cudaStreamSynchronize(void *);
int ncclGetUniqueId(UniqueId *);
int ncclCommInitRank(void **, int, UniqueId, int);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);

#define EXPORTED __attribute__((visibility("default")))

// What the communicator's library has left of its device.
EXPORTED size_t caller_free(void) {
  size_t free, total;
  return cudaMemGetInfo(&free, &total) == 0 ? free : 0;
}

// NCCL starts such a thread with a communicator (proxy.cc); the simulated one does not.
static void *service(void *unused) {
  prctl(PR_SET_NAME, "NCCL Service  0");
  while (pause() == -1) {
  }
  return unused;
}

EXPORTED int caller_start_service(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, service, NULL);
}

static void *comm, *buffer;

// A communicator of this process alone; it stays open.
EXPORTED int caller_create(void) {
  UniqueId id;
  int result = cudaSetDevice(0);
  if (result == 0) result = cudaMalloc(&buffer, 4000);
  if (result == 0) result = ncclGetUniqueId(&id);
  return result ? result : ncclCommInitRank(&comm, 1, id, 0);
}

EXPORTED int caller_reduce(int calls) {
  int result = 0;
  for (int i = 0; i < calls && result == 0; ++i) result = ncclAllReduce(buffer, buffer, 1000, 7, 0, comm, NULL);
  return result ? result : cudaStreamSynchronize(NULL);
}

EXPORTED int caller_run(int calls) {
  int result = caller_create();
  return result ? result : caller_reduce(calls);
}
