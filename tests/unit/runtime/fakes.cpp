#include "fakes.h"

#include <atomic>

namespace dshang::interpose::wrappers {

const flight::OpInfo* ops() {
  static const flight::OpInfo info[] = {{"all_reduce", flight::kOpCollective | flight::kOpReduces, 0}};
  return info;
}
std::uint32_t op_count() { return 1; }
void woke(const flight::Writer&) {}
bool is_own_address(const void*) { return false; }
void* real_function(const char*) { return nullptr; }
bool nccl_seen() { return fakes::nccl_was_seen; }

}  // namespace dshang::interpose::wrappers

namespace fakes {

using interpose::driver::kNotReady;
using interpose::driver::kSuccess;

Recorder::Recorder() : memory_(new std::uint64_t[flight::Writer::total_bytes() / 8]()) {
  writer_ = flight::Writer::format(memory_.get(), {}, interpose::wrappers::ops(), interpose::wrappers::op_count());
  interpose::runtime::recorder_slot.store(&writer_);
}

Recorder::~Recorder() { interpose::runtime::recorder_slot.store(nullptr); }

std::uint64_t Recorder::call(void* stream, std::uint32_t group) {
  auto record = writer_.open_call();
  record->stream = reinterpret_cast<std::uint64_t>(stream);
  record->group = group;
  record.complete();
  return record.n();
}

Gpu* Gpu::one = nullptr;

struct GpuFunctions {
  static int get_current(void** context) {
    std::lock_guard<std::recursive_mutex> held(Gpu::one->lock_);
    *context = Gpu::one->current;
    return kSuccess;
  }
  static int set_current(void* context) {
    std::lock_guard<std::recursive_mutex> held(Gpu::one->lock_);
    Gpu::one->current = context;
    return kSuccess;
  }
  static int create(void** event, unsigned flags) {
    std::lock_guard<std::recursive_mutex> held(Gpu::one->lock_);
    if (Gpu::one->create_fails || flags != interpose::driver::kDisableTiming) return 2;
    *event = reinterpret_cast<void*>(static_cast<std::uintptr_t>(0xe0000 + ++Gpu::one->created));
    Gpu::one->events_[*event] = {Gpu::one->current, true};
    return kSuccess;
  }
  static int record(void* event, void* stream) {
    std::lock_guard<std::recursive_mutex> held(Gpu::one->lock_);
    Gpu& gpu = *Gpu::one;
    if (gpu.record_fails) return gpu.record_fails;
    void* context = gpu.context_of.count(stream) ? gpu.context_of[stream] : Gpu::context(0);
    if (!gpu.events_.count(event) || gpu.events_[event].context != context) return 400;
    ++gpu.recorded;
    gpu.events_[event].reached = false;
    gpu.queue_[stream].push_back(event);
    return kSuccess;
  }
  static int query(void* event) {
    std::lock_guard<std::recursive_mutex> held(Gpu::one->lock_);
    Gpu& gpu = *Gpu::one;
    ++gpu.queried;
    if (gpu.broken) return gpu.broken;
    if (gpu.events_[event].context != gpu.current) return 400;
    return gpu.events_[event].reached ? kSuccess : kNotReady;
  }
  static int is_capturing(void* stream, int* status) {
    std::lock_guard<std::recursive_mutex> held(Gpu::one->lock_);
    *status = Gpu::one->capturing.count(stream) ? 1 : 0;
    return kSuccess;
  }
  static int get_ctx(void* stream, void** context) {
    std::lock_guard<std::recursive_mutex> held(Gpu::one->lock_);
    *context = Gpu::one->context_of.count(stream) ? Gpu::one->context_of[stream] : Gpu::context(0);
    return kSuccess;
  }
  static int exchange(int* mode) {
    std::lock_guard<std::recursive_mutex> held(Gpu::one->lock_);
    if (*mode == interpose::driver::kCaptureRelaxed) ++Gpu::one->relaxed;
    return kSuccess;
  }
  static int mem_info(std::size_t* free_bytes, std::size_t* total) {
    *free_bytes = Gpu::one->free_bytes;
    *total = Gpu::one->total_bytes;
    if (Gpu::one->while_asked) Gpu::one->while_asked();
    return kSuccess;
  }
  static int device(int* device) {
    *device = 3;
    return kSuccess;
  }
};

Gpu::Gpu() {
  one = this;
  functions_ = {GpuFunctions::get_current, GpuFunctions::set_current, GpuFunctions::create, GpuFunctions::record,
                GpuFunctions::query, GpuFunctions::is_capturing, GpuFunctions::get_ctx, GpuFunctions::exchange,
                GpuFunctions::mem_info, GpuFunctions::device, nullptr};
  interpose::driver::replace_functions(&functions_);
}

Gpu::~Gpu() {
  interpose::driver::replace_functions(nullptr);
  one = nullptr;
}

void Gpu::advance(void* stream, unsigned marks) {
  std::lock_guard<std::recursive_mutex> held(lock_);
  std::vector<void*>& queue = queue_[stream];
  for (unsigned i = 0; i < marks && !queue.empty(); ++i) {
    events_[queue.front()].reached = true;
    queue.erase(queue.begin());
  }
}

}  // namespace fakes
