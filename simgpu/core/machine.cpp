#include "simgpu/core/machine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "simgpu/core/abi.h"
#include "simgpu/core/log.h"
#include "simgpu/core/settings.h"

namespace simgpu::machine {
namespace {

constexpr int kProcesses = 512;

// Zeros are the machine that nobody uses.
struct Slot {
  std::atomic<int> pid;
  std::atomic<size_t> bytes[kMaxDevices];
};

struct Shared {
  std::atomic<size_t> used[kMaxDevices];
  Slot slots[kProcesses];
};
static_assert(std::atomic<size_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void* map(int file) {
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, flags, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// nullptr: it cannot be used.
void* map_file(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat info {};
  const bool fits = fstat(file, &info) == 0 && (static_cast<size_t>(info.st_size) >= sizeof(Shared) ||
                                                ftruncate(file, sizeof(Shared)) == 0);
  void* memory = fits ? map(file) : nullptr;
  close(file);
  return memory;
}

Shared* open_machine() {
  const char* path = std::getenv("SIMGPU_MACHINE");
  void* memory = nullptr;
  if (path != nullptr && *path != '\0') {
    memory = map_file(path);
    if (memory == nullptr)
      log(0, "SIMGPU_MACHINE=%s: %s; this process has its devices for itself", path, std::strerror(errno));
  }
  if (memory == nullptr) memory = map(-1);
  if (memory == nullptr) std::abort();
  return static_cast<Shared*>(memory);
}

Shared& shared() {
  static Shared* const kShared = open_machine();  // outlives every destructor
  return *kShared;
}

void empty(Slot& slot) {
  for (size_t device = 0; device < static_cast<size_t>(kMaxDevices); ++device)
    shared().used[device].fetch_sub(slot.bytes[device].exchange(0));
}

bool is_gone(int pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

void forget_the_dead() {
  for (Slot& slot : shared().slots) {
    int pid = slot.pid.load();
    if (pid == 0 || !is_gone(pid)) continue;
    empty(slot);
    slot.pid.compare_exchange_strong(pid, 0);
  }
}

Slot* claim() {
  const int self = getpid();
  for (Slot& slot : shared().slots) {
    if (slot.pid.load() != self) continue;
    empty(slot);  // of the program that this process was before
    return &slot;
  }
  forget_the_dead();
  for (Slot& slot : shared().slots) {
    int nobody = 0;
    if (slot.pid.compare_exchange_strong(nobody, self)) return &slot;
  }
  log(0, "more than %d processes use the devices", kProcesses);
  return nullptr;
}

// Of this process; a forked child cannot use the devices.
Slot* own() {
  static Slot* const kSlot = claim();
  return kSlot;
}

bool try_to_take(int device, size_t bytes) {
  std::atomic<size_t>& used = shared().used[device];
  size_t before = used.load();
  do {
    const size_t total = device_bytes(device);
    if (before > total || bytes > total - before) return false;
  } while (!used.compare_exchange_weak(before, before + bytes));
  return true;
}

}  // namespace

bool take(int device, size_t bytes) {
  Slot* slot = own();
  if (!try_to_take(device, bytes)) {
    forget_the_dead();
    if (!try_to_take(device, bytes)) return false;
  }
  if (slot != nullptr) slot->bytes[device].fetch_add(bytes);
  return true;
}

void give(int device, size_t bytes) {
  if (Slot* slot = own()) slot->bytes[device].fetch_sub(bytes);
  shared().used[device].fetch_sub(bytes);
}

size_t used(int device) {
  forget_the_dead();
  return shared().used[device].load();
}

std::vector<User> users(int device) {
  forget_the_dead();
  std::vector<User> found;
  for (const Slot& slot : shared().slots) {
    const int pid = slot.pid.load();
    const size_t bytes = slot.bytes[device].load();
    if (pid != 0 && bytes > 0) found.push_back({pid, bytes});
  }
  return found;
}

}  // namespace simgpu::machine
