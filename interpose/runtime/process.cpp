#include "interpose/runtime/process.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/rank/awake.h"
#include "core/rank/base_libc.h"
#include "core/rank/param.h"
#include "core/rank/say.h"
#include "core/rank/step_listener.h"
#include "interpose/runtime/api.h"
#include "interpose/runtime/endings.h"
#include "interpose/runtime/helper.h"
#include "interpose/runtime/libc_base.h"
#include "interpose/runtime/marks.h"
#include "interpose/runtime/memory.h"
#include "interpose/runtime/nvtx.h"
#include "interpose/runtime/ordered_failure.h"
#include "interpose/runtime/poller.h"

DSHANG_PARAM(bool, DISABLE, "0", "0|1", "1: every wrapper passes straight through");

namespace dshang::interpose::runtime {

std::atomic<const flight::Writer*> recorder_slot{nullptr};
std::atomic<bool> disabled_slot{false};

}  // namespace dshang::interpose::runtime

namespace dshang::interpose::process {
namespace {

enum State : int { kAsleep, kWaking, kAwakeState, kGivenUp };

// Writers stay valid for good (api.h); a process that was forked again and again beyond this stays inert.
constexpr unsigned kWakings = 8;
constexpr std::uint64_t kWakingTakes = 1000000000;  // ns, at most

Awake state_of_awake;
flight::Writer writers[kWakings];
unsigned wakings = 0;
std::atomic<int> state{kAsleep};
std::atomic<std::uint32_t> waking_thread{0};
std::atomic<unsigned> declined{0};
bool forked = false;
bool fork_handler = false;

// Runs in the child of fork(), which has one thread.
void fork_child() {
  const int was = state.load(std::memory_order_relaxed);
  runtime::recorder_slot.store(nullptr, std::memory_order_release);
  forked = true;
  if (was == kAsleep || was == kGivenUp) return;
  rank::step_listener.store(nullptr, std::memory_order_relaxed);
  rank::fall_asleep();
  memory::fall_asleep();
  marks::fall_asleep();
  poller::fall_asleep();
  helper::fall_asleep();
  if (still_open(state_of_awake.memory)) close(state_of_awake.memory.fd);
  state_of_awake = {};
  state.store(kAsleep, std::memory_order_release);
}

// RANK and WORLD_SIZE may be set by the program itself at any time, but reading them at each allocation is
// not worth it.
bool is_rank_process() {
  if (forked) return false;
  unsigned n = declined.fetch_add(1, std::memory_order_relaxed);
  if (n >= 64 && n % 64 != 0) return false;
  return getenv("RANK") && getenv("WORLD_SIZE");
}

bool give_up(const char* why) {
  rank::say("not recording in this process: %s; training goes on without it", why);
  state.store(kGivenUp, std::memory_order_release);
  return false;
}

bool prepare() {
  if (wakings == kWakings) return give_up("it was forked too often");
  if (!fork_handler) fork_handler = libc::at_fork(nullptr, nullptr, fork_child);
  if (!fork_handler) return give_up("no fork handler could be registered");
  Awake& awake = state_of_awake;
  if (!awake.environment.copy_now()) return give_up("no memory");
  awake.identity = identity_of_this_process();
  awake.memory = make_flight_memory(flight::Writer::total_bytes());
  if (!awake.memory.base) return give_up(awake.memory.why);
  awake.owner = libc::process_id();
  return true;
}

void publish() {
  const Awake& awake = state_of_awake;
  flight::Writer& writer = writers[wakings++];
  writer = flight::Writer::format(awake.memory.base, awake.identity, wrappers::ops(), wrappers::op_count());
  awake.environment.record(writer);
  memory::wake(writer);
  rank::wake(writer);
  wrappers::woke(writer);
  rank::step_listener.store(memory::memory_step, std::memory_order_release);
  runtime::recorder_slot.store(&writer, std::memory_order_release);
  memory::settle();
}

// Another thread is waking the process, which takes a few milliseconds, on a busy machine more; its own nested calls must
// not wait for it.  A communicator that is created unseen has no identity.
void wait_for_waking() {
  if (waking_thread.load(std::memory_order_relaxed) == rank::kernel_thread_id()) return;
  const std::uint64_t begin_ns = rank::now_ns();
  for (int i = 0; state.load(std::memory_order_acquire) == kWaking && !runtime::recorder(); ++i) {
    if (rank::now_ns() - begin_ns > kWakingTakes) return;
    if (i < 100) {
      sched_yield();
    } else {
      rank::sleep_ms(1);
    }
  }
}

[[gnu::constructor]] void loaded() {
  if (param_DISABLE.value()) {
    runtime::disabled_slot.store(true, std::memory_order_relaxed);
    return;
  }
  int kept_errno = errno;
  nvtx::name_own_library();
  ordered_failure::shorten_torchs_wait();
  errno = kept_errno;
}

}  // namespace

const Awake& awake() { return state_of_awake; }

bool is_owner() { return state_of_awake.owner && state_of_awake.owner == libc::process_id(); }

}  // namespace dshang::interpose::process

namespace dshang::interpose::runtime {

using namespace process;

void wake(WakeReason reason) {
  if (disabled() || recorder() || state.load(std::memory_order_acquire) == kGivenUp) return;
  if (reason != WakeReason::kCommunicator && !is_rank_process()) return;
  int expected = kAsleep;
  if (!state.compare_exchange_strong(expected, kWaking, std::memory_order_acq_rel)) {
    if (reason == WakeReason::kCommunicator) wait_for_waking();
    return;
  }
  int saved = errno;
  waking_thread.store(rank::kernel_thread_id(), std::memory_order_relaxed);
  if (prepare()) {
    publish();
    endings::install();
    nvtx::say_what_is_missing();
    state.store(kAwakeState, std::memory_order_release);
    helper::start();
  }
  errno = saved;
}

}  // namespace dshang::interpose::runtime

// Exported: called through ctypes by the package's .pth when torch.distributed is imported.
extern "C" [[gnu::visibility("default")]] void dshang_torch_distributed_imported() {
  dshang::interpose::runtime::wake(dshang::interpose::runtime::WakeReason::kImport);
}
