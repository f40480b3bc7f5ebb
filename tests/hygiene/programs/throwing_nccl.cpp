// An NCCL whose all-reduce throws.
#include <cstddef>
#include <stdexcept>

struct UniqueId {
  char bytes[128];
};

extern "C" int ncclCommInitRank(void** comm, int, UniqueId, int) {
  static int object;
  *comm = &object;
  return 0;
}
extern "C" int ncclCommUserRank(void*, int* rank) { return *rank = 0; }
extern "C" int ncclCommCount(void*, int* count) { return *count = 1, 0; }
extern "C" int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*) {
  throw std::runtime_error("thrown by NCCL");
}
