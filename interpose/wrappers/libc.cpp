// The wrappers of libc: one for each row of libc.def.  They record how the process ends and do not return.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/wrappers/wrapper.h"

namespace dshang::interpose {
namespace {

// The real function is missing only where the process has no dlsym: what it would do, by system calls.
[[noreturn]] void end_without_libc(flight::EndingKind kind, int code) {
  if (kind == flight::EndingKind::kAbort) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    for (int attempt = 0; attempt < 2; ++attempt) {  // first the host's handler, as abort() does
      syscall(SYS_tgkill, getpid(), static_cast<pid_t>(syscall(SYS_gettid)), SIGABRT);
      sigaction(SIGABRT, &action, nullptr);
    }
    code = 127;
  }
  for (;;) syscall(SYS_exit_group, code);
}

// These functions are called in signal handlers and in children of fork() and vfork(), where the loader's
// lock must not be taken: their real ones are looked up when the library is loaded.
[[gnu::constructor]] void find_real_functions() {
#define DSHANG_ROW(name, ...) resolve::in_library(Row::name, resolve::kNextInScope);
#include "interpose/symbols/libc.def"
#undef DSHANG_ROW
}

template <Row R, typename... P>
[[noreturn]] void wrapped(const calls::Entry&, P... p) {
  constexpr flight::EndingKind kKind = info(R).ending;
  int code = kKind == flight::EndingKind::kAbort ? SIGABRT : (0 + ... + p);
  constexpr bool kExits = kKind == flight::EndingKind::kExit;
  if (!runtime::disabled()) {
    runtime::ending(kKind, kExits ? code & 0xff : code);
    if (kExits) runtime::hand_over_before_end();
  }
  if (void* real = resolve::found_already(R, resolve::kNextInScope))
    reinterpret_cast<void (*)(P...)>(real)(p...);
  end_without_libc(kKind, code);
}

}  // namespace

#define DSHANG_ROW(name, result, parameters, kind, ending) \
  DSHANG_WRAPPER(name, result, parameters) { wrapped<Row::name>(DSHANG_HERE DSHANG_ARGUMENTS parameters); }
#include "interpose/symbols/libc.def"
#undef DSHANG_ROW

}  // namespace dshang::interpose
