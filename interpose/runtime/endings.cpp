#include "interpose/runtime/endings.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "core/rank/base_libc.h"
#include "interpose/runtime/api.h"
#include "interpose/runtime/helper.h"
#include "interpose/runtime/libc_base.h"
#include "interpose/runtime/poller.h"
#include "interpose/runtime/process.h"

namespace dshang::interpose::endings {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGABRT, SIGSEGV, SIGBUS};

bool installed = false;

// A fault happens again by itself when the handler returns, at the same instruction; a signal that was sent
// does not.
bool comes_again(const siginfo_t* info) {
  return info && info->si_code > 0 && (info->si_signo == SIGSEGV || info->si_signo == SIGBUS) &&
         info->si_code != SI_KERNEL;
}

// What others send to end a process, not what its own fault brings about.
bool is_request(int signal) { return signal == SIGTERM || signal == SIGINT; }

// The default disposition, which this one stood for: also where a handler that was installed later calls this
// one as the one before it.
void on_signal(int signal, siginfo_t* info, void*) {
  int saved = errno;
  runtime::ending(flight::EndingKind::kSignal, signal);
  // The helper thread, which hands over, runs on: it has all signals blocked.
  if (is_request(signal)) runtime::hand_over_before_end();
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
  if (!comes_again(info)) syscall(SYS_tgkill, libc::process_id(), rank::kernel_thread_id(), signal);
  errno = saved;
}

void on_exit_status(int status, void*) {
  if (!process::is_owner()) return;
  runtime::ending(flight::EndingKind::kExit, status & 0xff);
  poller::stop();
  runtime::hand_over_before_end();
}

}  // namespace

void install() {
  if (installed) return;
  installed = true;
  on_exit(on_exit_status, nullptr);
  // The kernel keeps signals without a handler from the first process of a pid namespace: it must stay so.
  if (libc::process_id() == 1) return;
  for (int signal : kSignals) {
    struct sigaction now;
    if (sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL)
      continue;
    struct sigaction ours = {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    sigaction(signal, &ours, nullptr);
  }
}

}  // namespace dshang::interpose::endings

namespace dshang::interpose::runtime {

void ending(flight::EndingKind kind, int code) {
  const flight::Writer* writer = recorder();
  if (!writer || !process::is_owner()) return;
  // What ends a process while its exit handlers run is how it ended: a later _exit(), a crash in a
  // destructor.
  flight::Ending& noted = writer->header().ending;
  if (noted.kind.load(std::memory_order_relaxed) == flight::EndingKind::kExit) {
    noted.kind.store(flight::EndingKind::kNone, std::memory_order_relaxed);
  }
  writer->ending(kind, code);
}

void hand_over_with_first_communicator() {
  static std::atomic<int> waited_in{0};  // a pid: a forked child that wakes has a first communicator of its own
  const int pid = libc::process_id();
  if (waited_in.load(std::memory_order_relaxed) == pid || !process::is_owner()) return;
  waited_in.store(pid, std::memory_order_relaxed);
  helper::wait_for_hand_over();
}

void hand_over_before_end() {
  if (process::is_owner()) helper::wait_for_hand_over();
}

}  // namespace dshang::interpose::runtime
