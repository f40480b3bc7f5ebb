// The wrappers of the CUDA runtime: one for each row of cuda.def, made by the row's kind.
#include "interpose/wrappers/wrapper.h"

namespace dshang::interpose {
namespace {

using namespace abi;
using calls::Entry;
using calls::this_thread;
using flight::MemoryKind;
using runtime::WakeReason;

constexpr CudaResult kNoFunction = CudaResult::kNotSupported;

// Says for as long as it lives which function this thread is in: cudaFree and its like wait for the device.  A
// thread that is inside NCCL, which allocates too, is said to be there.
template <Row R>
class Inside {
 public:
  explicit Inside(const flight::Writer* writer) : writer_(this_thread.nccl.frame ? nullptr : writer) {
    if (!writer_) return;
    since_ns_ = calls::now_ns();
    calls::inside(*writer_, R, since_ns_);
  }
  ~Inside() {
    if (!writer_) return;
    std::uint64_t now = calls::now_ns();
    calls::outside(*writer_, now);
    if constexpr (info(R).kind != Kind::kSynchronize) runtime::memory_call(since_ns_, now);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const flight::Writer* writer_;
  std::uint64_t since_ns_ = 0;
};

template <Row R>
CudaResult allocate(Stay& stay, void* real, auto where, Bytes bytes, auto... rest) {
  constexpr MemoryKind kKind = info(R).memory;
  CudaResult result = stay.call<CudaResult>(real, where, bytes, rest...);
  if (result != CudaResult::kSuccess) {
    runtime::allocation_failed(kKind, static_cast<std::size_t>(bytes), static_cast<int>(result));
  } else if constexpr (info(R).kind == Kind::kRegister) {
    runtime::allocated(kKind, where, static_cast<std::size_t>(bytes));
  } else if (where && *where) {
    runtime::allocated(kKind, *where, static_cast<std::size_t>(bytes));
  }
  return result;
}

template <Row R>
CudaResult release(Stay& stay, void* real, Pointer address, auto... rest) {
  runtime::Freed freed;
  if (address) freed = runtime::freed(info(R).memory, address);
  CudaResult result = stay.call<CudaResult>(real, address, rest...);
  if (result != CudaResult::kSuccess && freed.bytes) runtime::restored(freed, address);
  return result;
}

template <Row R>
CudaResult entry_point(Stay& stay, void* real, const char* name, PointerOut function, auto... rest) {
  CudaResult result = stay.call<CudaResult>(real, name, function, rest...);
  if (result == CudaResult::kSuccess && name && function && *function) {
    *function = runtime::replace_driver_entry(name, *function);
  }
  return result;
}

constexpr bool is_of_device(Row row) {
  MemoryKind kind = info(row).memory;
  return kind == MemoryKind::kDevice || kind == MemoryKind::kPool || kind == MemoryKind::kManaged;
}

constexpr bool wakes(Row row) { return info(row).kind == Kind::kAllocate && is_of_device(row); }

struct NoChange {};
template <Row R>
using Change = std::conditional_t<is_of_device(R), runtime::MemoryChange, NoChange>;

template <Row R, typename... P>
CudaResult wrapped(const Entry& here, P... p) {
  constexpr Kind kind = info(R).kind;
  if constexpr (kind == Kind::kSetDevice) wake_for(WakeReason::kSetDevice);
  if constexpr (wakes(R)) wake_for(WakeReason::kAllocation);
  Stay stay(this_thread.cuda, here);
  void* real = resolve::by_caller(R, here.caller).function;
  if (!real) return missing<R>(kNoFunction);
  if (stay.nested() || runtime::disabled()) return stay.call<CudaResult>(real, p...);
  if constexpr (kind == Kind::kAllocate || kind == Kind::kRegister) {
    Inside<R> inside(stay.writer);
    [[maybe_unused]] Change<R> change;
    return allocate<R>(stay, real, p...);
  } else if constexpr (kind == Kind::kFree) {
    Inside<R> inside(stay.writer);
    [[maybe_unused]] Change<R> change;
    return release<R>(stay, real, p...);
  } else if constexpr (kind == Kind::kEntryPoint) {
    return entry_point<R>(stay, real, p...);
  } else if constexpr (kind == Kind::kSynchronize) {
    Inside<R> inside(stay.writer);
    return stay.call<CudaResult>(real, p...);
  } else if constexpr (kind == Kind::kGraphLaunch) {
    CudaResult result = stay.call<CudaResult>(real, p...);
    if (stay.writer && result == CudaResult::kSuccess) runtime::graph_launched();
    return result;
  } else {
    return stay.call<CudaResult>(real, p...);
  }
}

}  // namespace

#define DSHANG_ROW(name, result, parameters, kind, memory) \
  DSHANG_WRAPPER(name, result, parameters) { return wrapped<Row::name>(DSHANG_HERE DSHANG_ARGUMENTS parameters); }
#include "interpose/symbols/cuda.def"
#undef DSHANG_ROW

}  // namespace dshang::interpose
