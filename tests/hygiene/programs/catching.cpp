// Catches what the all-reduce throws, twice.
#include <cstddef>
#include <cstdio>
#include <stdexcept>

struct UniqueId {
  char bytes[128];
};
extern "C" int ncclCommInitRank(void** comm, int size, UniqueId id, int rank);
extern "C" int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*);

int main() {
  void* comm = nullptr;
  if (ncclCommInitRank(&comm, 1, UniqueId{}, 0)) return 1;
  for (int i = 0; i < 2; ++i) {
    try {
      ncclAllReduce(nullptr, nullptr, 1, 7, 0, comm, nullptr);
      return 2;
    } catch (const std::runtime_error& error) {
      std::printf("caught: %s\n", error.what());
    }
  }
  return 0;
}
