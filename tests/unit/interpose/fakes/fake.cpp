// A fake libnccl.so.2 (FAKE_NCCL) or libcudart.so.13 (FAKE_CUDART), made from the same rows as the wrappers.
#include "fake.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "interpose/symbols/rows.h"

namespace {

using namespace dshang::interpose;
using namespace dshang::interpose::abi;

struct FakeComm {
  int rank, size;
  bool ready;
};

struct State {
  std::atomic<int> counts[kRows] = {};
  int results[kRows] = {};
  bool sets_errno[kRows] = {};
  void (*hook)(const char*) = nullptr;
  bool nonblocking = false, early = false;
  int child_rank = 0, child_size = 2;
  std::vector<std::pair<CommOut, Comm>> in_background;
  std::uintptr_t next_address = 0, addresses = 0x10000;
  int asked_too_early = 0;
  std::atomic<int> errno_seen = 0;
};
State state;

// The group that is open on a thread.
struct Group {
  int depth = 0;
  std::vector<std::pair<CommOut, Comm>> creations;
};
thread_local Group group;

int row_named(const char* name) {
  for (unsigned row = 0; row < kRows; ++row) {
    if (std::strcmp(row_info::kTable[row].name, name) == 0) return static_cast<int>(row);
  }
  return -1;
}

template <typename Result>
Result played(Row row) {
  state.errno_seen = errno;
  ++state.counts[index(row)];
  if (state.sets_errno[index(row)]) errno = 42;
  if (state.hook) state.hook(info(row).name);
  if constexpr (std::is_pointer_v<Result>) {
    return reinterpret_cast<Result>(static_cast<std::uintptr_t>(state.results[index(row)]));
  } else if constexpr (!std::is_void_v<Result>) {
    return static_cast<Result>(state.results[index(row)]);
  }
}

#if FAKE_NCCL
}  // namespace

extern "C" Result public_ncclBroadcast(const void*, void*, Count, DataType, Root, Comm, Stream) __asm__("ncclBroadcast");
extern "C" Result public_ncclGetUniqueId(UniqueId*) __asm__("ncclGetUniqueId");

namespace {

Comm handle(int rank, int size, bool ready) { return reinterpret_cast<Comm>(new FakeComm{rank, size, ready}); }
FakeComm& of(Comm comm) { return *reinterpret_cast<FakeComm*>(comm); }

Result make(CommOut where, int rank, int size, Result result) {
  if (result != Result::kSuccess) return result;
  Comm comm = handle(rank, size, !state.nonblocking);
  if (group.depth) {
    group.creations.emplace_back(where, comm);
  } else if (state.nonblocking) {
    state.in_background.emplace_back(where, comm);
    if (state.early) *where = comm;
    return Result::kInProgress;
  } else {
    *where = comm;
  }
  return Result::kSuccess;
}

// What a function does besides being counted.
template <Row R, typename T, typename... P>
T extra(T result, P...) {
  return result;
}
template <>
Result extra<Row::ncclBcast>(Result, void* buffer, Count count, DataType type, Root root, Comm comm, Stream stream) {
  return public_ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
template <>
Result extra<Row::ncclCommInitRank>(Result result, CommOut where, int size, UniqueId, int rank) {
  return make(where, rank, size, result);
}
template <>
Result extra<Row::ncclCommInitRankConfig>(Result result, CommOut where, int size, UniqueId, int rank, Config) {
  return make(where, rank, size, result);
}
template <>
Result extra<Row::ncclCommInitRankScalable>(Result result, CommOut where, int size, int rank, int, const UniqueId*, Config) {
  return make(where, rank, size, result);
}
template <>
Result extra<Row::ncclCommInitAll>(Result result, CommOut where, int size, const int*) {
  UniqueId id;
  public_ncclGetUniqueId(&id);
  for (int i = 0; i < size; ++i) make(where + i, i, size, result);
  return result;
}
template <>
Result extra<Row::ncclCommSplit>(Result result, Comm, int color, int, CommOut where, Config) {
  if (color != kNoColor) return make(where, state.child_rank, state.child_size, result);
  *where = nullptr;
  return result;
}
template <>
Result extra<Row::ncclCommShrink>(Result result, Comm, int*, int, CommOut where, Config, int) {
  return make(where, state.child_rank, state.child_size, result);
}
template <>
Result extra<Row::ncclCommGrow>(Result result, Comm, int size, const UniqueId*, int, CommOut where, Config) {
  return make(where, state.child_rank, size, result);
}
template <>
Result extra<Row::ncclCommGetAsyncError>(Result, Comm, Result* error) {
  *error = static_cast<Result>(state.results[index(Row::ncclCommGetAsyncError)]);
  return Result::kSuccess;
}
template <>
Result extra<Row::ncclGroupStart>(Result result) {
  ++group.depth;
  return result;
}
template <>
Result extra<Row::ncclGroupEnd>(Result result) {
  if (--group.depth == 0) {
    for (auto [where, comm] : group.creations) *where = comm;
    group.creations.clear();
  }
  return result;
}
template <>
Result extra<Row::ncclGroupSimulateEnd>(Result result, void*) {
  --group.depth;
  group.creations.clear();
  return result;
}

}  // namespace

// As in libnccl: `ncclX` is a weak alias of `pncclX`.
#define DSHANG_ROW(name, result, parameters, kind, op)                                     \
  extern "C" result fake_##name(DSHANG_PARAMETERS parameters) __asm__("p" #name);          \
  extern "C" result weak_##name(DSHANG_PARAMETERS parameters) __asm__(#name)               \
      __attribute__((weak, alias("p" #name)));                                             \
  result fake_##name(DSHANG_PARAMETERS parameters) {                                       \
    return extra<Row::name>(played<result>(Row::name) DSHANG_ARGUMENTS parameters);        \
  }
#include "interpose/symbols/nccl.def"
#undef DSHANG_ROW

extern "C" Result ncclCommUserRank(Comm comm, int* rank) {
  if (!of(comm).ready) ++state.asked_too_early;
  *rank = of(comm).rank;
  return Result::kSuccess;
}
extern "C" Result ncclCommCount(Comm comm, int* size) {
  *size = of(comm).size;
  return Result::kSuccess;
}
extern "C" Result ncclGetVersion(int* version) {
  *version = 22807;
  return Result::kSuccess;
}
extern "C" const char* ncclGetErrorString(Result) { return "an error of the fake"; }
#endif

#if FAKE_CUDART
template <Row R>
CudaResult extra(CudaResult result, auto... p) {
  auto arguments = std::make_tuple(p...);
  if (result != CudaResult::kSuccess) return result;
  if constexpr (info(R).kind == Kind::kAllocate) {
    *std::get<0>(arguments) = reinterpret_cast<void*>(state.next_address ? state.next_address : state.addresses += 0x1000);
    state.next_address = 0;
  } else if constexpr (info(R).kind == Kind::kEntryPoint) {
    *std::get<1>(arguments) = reinterpret_cast<void*>(0x5000);
  }
  return result;
}

}  // namespace

#define DSHANG_ROW(name, result, parameters, kind, memory)                              \
  extern "C" result fake_##name(DSHANG_PARAMETERS parameters) __asm__(#name);           \
  result fake_##name(DSHANG_PARAMETERS parameters) {                                    \
    return extra<Row::name>(played<result>(Row::name) DSHANG_ARGUMENTS parameters);     \
  }
#include "interpose/symbols/cuda.def"
#undef DSHANG_ROW

extern "C" CudaResult cudaRuntimeGetVersion(int* version) {
  *version = 13010;
  return CudaResult::kSuccess;
}
#endif

namespace {

constexpr FakeControl kControl = {
    [] {
      state.~State();
      new (&state) State{};
      group = Group{};
    },
    [](const char* name) {
      int row = row_named(name);
      return row < 0 ? -1 : state.counts[row].load();
    },
    [](const char* name, int result) { state.results[row_named(name)] = result; },
    [](void (*hook)(const char*)) { state.hook = hook; },
    [](const char* name) { state.sets_errno[row_named(name)] = true; },
    [](bool on, bool early) {
      state.nonblocking = on;
      state.early = early;
    },
    [] {
#if FAKE_NCCL
      for (auto [where, comm] : state.in_background) {
        of(comm).ready = true;
        *where = comm;
      }
#endif
      state.in_background.clear();
    },
    [](int rank, int size) {
      state.child_rank = rank;
      state.child_size = size;
    },
    [](std::uintptr_t address) { state.next_address = address; },
    [] { return state.asked_too_early; },
    [] { return state.errno_seen.load(); },
};

}  // namespace

#if FAKE_NCCL
const FakeControl* fake_nccl_control() { return &kControl; }
#else
const FakeControl* fake_cudart_control() { return &kControl; }
#endif
