#include "core/rank/python_state.h"

#include <unistd.h>

#include "core/rank/base_libc.h"
#include "core/rank/param.h"
#include "core/rank/pyframes.h"
#include "core/rank/python_api.h"
#include "core/rank/python_walk.h"
#include "core/rank/say.h"

namespace dshang::rank {
namespace {

DSHANG_PARAM(bool, PYTHON_STACKS, "1", "0|1", "Python call site of every call, and stacks of stuck threads");

enum State : int { kUnseen, kFinding, kFound, kTrusted, kOff };
std::atomic<int> state{kUnseen};
std::atomic<bool> closing{false};
Python found;

constexpr unsigned kOwnFiles = 32;
std::atomic<std::uintptr_t> own_files[kOwnFiles];
std::atomic<unsigned> own_file_count{0};
std::atomic<std::uint64_t> own_file_bits{0};

// Objects are 16-byte aligned: the low bits say nothing.
std::uint64_t bit_of(std::uintptr_t address) { return std::uint64_t{1} << ((address >> 4) & 63); }

void find_once(const flight::Writer& writer) {
  int unseen = kUnseen;
  if (!state.compare_exchange_strong(unseen, kFinding)) return;
  if (!param_PYTHON_STACKS.value()) {
    writer.header().python.store(2, std::memory_order_relaxed);
    state.store(kOff);
    return;
  }
  const char* why = find_python(&found);
  if (!why) {
    state.store(kFound, std::memory_order_release);
  } else if (!*why) {
    state.store(kOff);
  } else {
    switch_python_off(writer, why);
  }
}

}  // namespace

const Python* readable_python(const flight::Writer& writer) {
  int now = state.load(std::memory_order_acquire);
  if (now == kUnseen) {
    find_once(writer);
    now = state.load(std::memory_order_acquire);
  }
  if (now != kFound && now != kTrusted) return nullptr;
  if (found.functions.is_finalizing && found.functions.is_finalizing()) return nullptr;
  return &found;
}

bool own_frames_are_safe() {
  return !closing.load(std::memory_order_relaxed) ||
         kernel_thread_id() == static_cast<std::uint32_t>(getpid());
}

void switch_python_off(const flight::Writer& writer, const char* why) {
  if (state.exchange(kOff) == kOff) return;
  writer.header().python.store(2, std::memory_order_relaxed);
  if (!python_ends()) say("no Python call sites and stacks: %s", why);
}

bool walk_is_trusted(const flight::Writer& writer, const Python& python, std::uintptr_t thread) {
  if (state.load(std::memory_order_acquire) == kTrusted) {
    if (writer.header().python.load(std::memory_order_relaxed) == 0) {
      writer.header().python.store(1, std::memory_order_relaxed);
    }
    return true;
  }
  CheckedMemory memory;
  unsigned frames = 0;
  bool sound = true;
  bool ended = walk_frames(memory, python.layout, thread, [&](const FrameAt& at) {
    sound = is_code(memory, python, at.code);
    return sound && ++frames < 1000;
  });
  if (!ended || !sound) {
    switch_python_off(writer, "this Python's frames do not read as those of its version");
    return false;
  }
  if (frames == 0) return false;  // says nothing yet
  int before = kFound;
  state.compare_exchange_strong(before, kTrusted);
  std::uint32_t none = 0;
  writer.header().python.compare_exchange_strong(none, 1);
  return true;
}

void python_closes() { closing.store(true, std::memory_order_relaxed); }

void python_forked() { closing.store(false, std::memory_order_relaxed); }

void add_own_file(std::uintptr_t file_name) {
  if (is_own_file(file_name)) return;
  unsigned at = own_file_count.load(std::memory_order_relaxed);
  if (at == kOwnFiles) return;
  own_files[at].store(file_name, std::memory_order_relaxed);
  own_file_count.store(at + 1, std::memory_order_release);
  own_file_bits.fetch_or(bit_of(file_name), std::memory_order_release);
}

bool is_own_file(std::uintptr_t file_name) {
  if (!(own_file_bits.load(std::memory_order_relaxed) & bit_of(file_name))) return false;
  unsigned count = own_file_count.load(std::memory_order_acquire);
  for (unsigned i = 0; i < count; ++i) {
    if (own_files[i].load(std::memory_order_relaxed) == file_name) return true;
  }
  return false;
}

}  // namespace dshang::rank
