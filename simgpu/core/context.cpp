#include "simgpu/core/context.h"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "simgpu/core/log.h"
#include "simgpu/core/settings.h"

namespace simgpu {
namespace {

struct ThreadState {
  int device = 0;
  Context* context = nullptr;
  Error last = kSuccess;
};

thread_local ThreadState thread_state;

std::array<Context, kMaxDevices> contexts;
std::array<std::atomic<bool>, kMaxDevices> context_is_active;
std::array<std::atomic<int>, kMaxDevices> faults;

enum class Life { kUnused, kInUse, kForked };
std::atomic<Life> life{Life::kUnused};

void in_forked_child() { life.store(Life::kForked); }

void first_start() {
  static std::mutex* const kMutex = new std::mutex;
  std::lock_guard<std::mutex> lock(*kMutex);
  if (life.load() != Life::kUnused) return;
  for (int i = 0; i < kMaxDevices; ++i) contexts[static_cast<size_t>(i)].device = i;
  pthread_atfork(nullptr, nullptr, in_forked_child);
  load_nvml();
  life.store(Life::kInUse);
}

struct ErrorRow {
  int number;
  const char* runtime_name;
  const char* driver_name;
  const char* text;
};

constexpr ErrorRow kErrors[] = {
#define SIMGPU_ERROR(number, runtime_name, driver_name, text) {number, runtime_name, driver_name, text},
#include "simgpu/core/errors.def"
#undef SIMGPU_ERROR
};

const ErrorRow* find_error(int number) {
  for (const ErrorRow& row : kErrors) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

}  // namespace

int device_count() { return static_cast<int>(settings().visible.size()); }
int device() { return thread_state.device; }
void set_device(int device) { thread_state.device = device; }
bool valid_device(int device) { return device >= 0 && device < device_count(); }

int physical_device(int device) {
  return valid_device(device) ? settings().visible[static_cast<size_t>(device)] : 0;
}

DeviceScope::DeviceScope(int device) : device_(thread_state.device), context_(thread_state.context) {
  thread_state.device = device;
  thread_state.context = primary_context(device);
}

DeviceScope::~DeviceScope() {
  thread_state.device = device_;
  thread_state.context = context_;
}

Error start() {
  if (life.load(std::memory_order_acquire) == Life::kUnused) first_start();
  return life.load(std::memory_order_acquire) == Life::kInUse ? kSuccess : kNotInitialized;
}

Error require_start() {
  return life.load(std::memory_order_acquire) == Life::kInUse ? kSuccess : kNotInitialized;
}

Error enter_device() {
  if (Error error = start()) return error;
  if (device_count() == 0) return kNoDevice;
  activate_context(thread_state.device);
  thread_state.context = primary_context(thread_state.device);
  return device_fault(thread_state.device);
}

Error require_context() {
  if (Error error = require_start()) return error;
  if (thread_state.context == nullptr) return kInvalidContext;
  return device_fault(thread_state.device);
}

void load_nvml() {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&load_nvml), &self) == 0 || self.dli_fname == nullptr) return;
  std::string path = self.dli_fname;
  const size_t slash = path.rfind('/');
  path = (slash == std::string::npos ? std::string(".") : path.substr(0, slash)) + "/libnvidia-ml.so.1";
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) log(1, "no NVML: %s", dlerror());
}

Context* primary_context(int device) { return &contexts[static_cast<size_t>(device)]; }
Context* current_context() { return thread_state.context; }

void set_current_context(Context* context) {
  thread_state.context = context;
  if (context != nullptr) thread_state.device = context->device;
}

Context* find_context(const void* handle) {
  for (int i = 0; i < device_count(); ++i) {
    if (handle == primary_context(i)) return primary_context(i);
  }
  return nullptr;
}

bool context_active(int device) { return context_is_active[static_cast<size_t>(device)].load(); }
void activate_context(int device) { context_is_active[static_cast<size_t>(device)].store(true); }

Error keep_error(Error error) {
  if (error != kSuccess) thread_state.last = error;
  return error;
}

Error last_error(bool reset) {
  const Error fault = device_fault(thread_state.device);
  const Error error = fault != kSuccess ? fault : thread_state.last;
  if (reset) thread_state.last = kSuccess;
  return error;
}

void fault_device(int device, Error error) {
  int none = kSuccess;
  faults[static_cast<size_t>(device)].compare_exchange_strong(none, error);
}

Error device_fault(int device) { return static_cast<Error>(faults[static_cast<size_t>(device)].load()); }

const char* runtime_error_name(int error) {
  const ErrorRow* row = find_error(error);
  return row != nullptr ? row->runtime_name : nullptr;
}

const char* driver_error_name(int error) {
  const ErrorRow* row = find_error(error);
  return row != nullptr && *row->driver_name != '\0' ? row->driver_name : nullptr;
}

const char* error_text(int error) {
  const ErrorRow* row = find_error(error);
  return row != nullptr ? row->text : nullptr;
}

}  // namespace simgpu
