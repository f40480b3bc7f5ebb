// Another tool's preload: wraps ncclAllReduce alone and finds the real one by the usual library name.
#include <dlfcn.h>

#include "interpose/symbols/types.h"

using namespace dshang::interpose::abi;

namespace {
int calls = 0;
}

extern "C" {
__attribute__((visibility("default"))) int other_calls() { return calls; }

__attribute__((visibility("default"))) Result ncclAllReduce(const void* from, void* to, Count count, DataType type, RedOp op,
                                                            Comm comm, Stream stream) {
  ++calls;
  void* nccl = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  auto real = reinterpret_cast<decltype(&ncclAllReduce)>(dlsym(nccl, "ncclAllReduce"));
  return real(from, to, count, type, op, comm, stream);
}
}
