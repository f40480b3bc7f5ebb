#include "runtime_double.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/rank/awake.h"

namespace runtime_double {

State state;
std::mutex mutex;  // for what is appended to by several threads

void fall_asleep() {
  if (interpose::runtime::recorder()) rank::fall_asleep();
  interpose::runtime::recorder_slot = nullptr;
  interpose::runtime::disabled_slot = false;
  state = State{};
}

void wake_up() {
  void* memory = mmap(nullptr, flight::Writer::total_bytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  flight::Identity identity;
  identity.world_size = 4;
  auto* writer = new flight::Writer(
      flight::Writer::format(memory, identity, interpose::wrappers::ops(), interpose::wrappers::op_count()));
  rank::wake(*writer);
  interpose::wrappers::woke(*writer);
  interpose::runtime::recorder_slot = writer;
}

}  // namespace runtime_double

namespace dshang::interpose::runtime {

using runtime_double::mutex;
using runtime_double::state;
using Guard = std::lock_guard<std::mutex>;

std::atomic<const flight::Writer*> recorder_slot{nullptr};
std::atomic<bool> disabled_slot{false};

void wake(WakeReason reason) {
  state.wakes.push_back(reason);
  if (state.wakes_up && !recorder() && reason == WakeReason::kCommunicator) runtime_double::wake_up();
}

bool capturing(void* stream) { return state.capturing.count(stream) > 0; }

Mark mark_start(const CallSpan& calls) {
  Guard guard(mutex);
  Mark mark = state.marks.size() + 1;
  state.marks.push_back({calls, "start", mark});
  return mark;
}
void mark_end(const CallSpan& calls, Mark mark) {
  Guard guard(mutex);
  state.marks.push_back({calls, "end", mark});
}
void mark_cancel(const CallSpan& calls, Mark mark) {
  Guard guard(mutex);
  state.marks.push_back({calls, "cancel", mark});
}
void graph_launched() { ++state.graph_launches; }

void MemoryChange::begins() { ++state.changing; }
void MemoryChange::ends() { --state.changing; }
void allocated(flight::MemoryKind kind, const void* address, std::size_t bytes) {
  state.memory.push_back({"allocated", kind, reinterpret_cast<std::uintptr_t>(address), bytes, state.changing});
}
Freed freed(flight::MemoryKind kind, const void* address) {
  state.memory.push_back({"freed", kind, reinterpret_cast<std::uintptr_t>(address), 0, state.changing});
  return {kind, 77};
}
void restored(const Freed& freed, const void* address) {
  state.memory.push_back({"restored", freed.kind, reinterpret_cast<std::uintptr_t>(address), freed.bytes, state.changing});
}
void allocation_failed(flight::MemoryKind kind, std::size_t bytes, int) {
  state.memory.push_back({"failed", kind, 0, bytes, state.changing});
}
void memory_call(std::uint64_t begin_ns, std::uint64_t end_ns) { state.timed += begin_ns && begin_ns <= end_ns; }
bool device_memory(std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  Guard guard(mutex);
  *free_bytes = state.free_bytes;
  *total_bytes = 4000;
  state.free_bytes -= 100;
  return true;
}
int current_device() { return 3; }
const Failure* failure() { return state.failure; }
void* replace_driver_entry(const char* name, void* real) {
  return std::strcmp(name, "cuMemCreate") == 0 ? reinterpret_cast<void*>(0x6000) : real;
}

// A test that ends its process tells by the output how.
void ending(flight::EndingKind kind, int code) {
  if (const char* path = std::getenv("DOUBLE_ENDING")) {
    if (FILE* file = std::fopen(path, "w")) {
      std::fprintf(file, "%d %d", static_cast<int>(kind), code);
      std::fclose(file);
    }
  }
}

void hand_over_with_first_communicator() {}
void hand_over_before_end() {}

}  // namespace dshang::interpose::runtime
