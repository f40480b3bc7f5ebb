// A library that uses NCCL and the CUDA runtime, as libtorch_cuda.so does: by direct calls through its PLT.
#include <cstddef>

#include "interpose/symbols/types.h"

using namespace dshang::interpose::abi;

extern "C" {
Result ncclCommInitRank(CommOut, int, UniqueId, int);
Result ncclAllReduce(const void*, void*, Count, DataType, RedOp, Comm, Stream);
Result ncclBcast(void*, Count, DataType, Root, Comm, Stream);
Result ncclGroupStart();
Result ncclGroupEnd();
Result ncclCommDestroy(Comm);
CudaResult cudaMalloc(void**, Bytes);
CudaResult cudaFree(void*);

__attribute__((visibility("default"))) Comm caller_create(char id) {
  UniqueId unique{};
  unique.bytes[0] = id;
  Comm comm = nullptr;
  return ncclCommInitRank(&comm, 2, unique, 0) == Result::kSuccess ? comm : nullptr;
}

__attribute__((visibility("default"))) int caller_all_reduce(Comm comm) {
  return static_cast<int>(ncclAllReduce(nullptr, nullptr, Count{1}, DataType{7}, RedOp{0}, comm, nullptr));
}

// Everything once; 0 = as it should be.
__attribute__((visibility("default"))) int caller_run(char id) {
  Comm comm = caller_create(id);
  if (!comm) return 1;
  if (caller_all_reduce(comm)) return 2;
  if (ncclGroupStart() != Result::kSuccess) return 3;
  if (ncclBcast(nullptr, Count{1}, DataType{7}, Root{0}, comm, nullptr) != Result::kSuccess) return 4;
  if (ncclGroupEnd() != Result::kSuccess) return 5;
  return ncclCommDestroy(comm) == Result::kSuccess ? 0 : 6;
}

#if CALLER_USES_CUDA
__attribute__((visibility("default"))) int caller_allocate() {
  void* address = nullptr;
  if (cudaMalloc(&address, Bytes{64}) != CudaResult::kSuccess || !address) return 1;
  return cudaFree(address) == CudaResult::kSuccess ? 0 : 2;
}
#endif
}
