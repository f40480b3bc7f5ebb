// What all wrappers share.
#pragma once

#include "interpose/calls/thread.h"
#include "interpose/resolve/resolver.h"
#include "interpose/runtime/api.h"
#include "interpose/runtime/log.h"
#include "interpose/symbols/rows.h"

// Declares and begins a wrapper: exported under the name of the function that it stands for, whatever headers say
// of it.
#define DSHANG_WRAPPER(name, result, parameters)                                                               \
  extern "C" __attribute__((visibility("default"))) result dshang_wrap_##name(DSHANG_PARAMETERS parameters)    \
      __asm__(#name);                                                                                          \
  result dshang_wrap_##name(DSHANG_PARAMETERS parameters)

// Where a wrapper was entered; to be used in the exported function itself.
#define DSHANG_HERE                                        \
  ::dshang::interpose::calls::Entry {                      \
    __builtin_frame_address(0), __builtin_return_address(0) \
  }

namespace dshang::interpose {

// What a wrapper returns where the real function is missing; one line a function says so.
template <Row R>
const char* missing(const char* instead) {
  DSHANG_LOG_ONCE("%s is in no loaded library", info(R).name);
  return instead;
}
template <Row R, typename Result>
Result missing(Result instead) {
  DSHANG_LOG_ONCE("%s is in no loaded library; it fails with %d", info(R).name, static_cast<int>(instead));
  return instead;
}

inline void wake_for(runtime::WakeReason reason) {
  if (!runtime::recorder() && !runtime::disabled()) runtime::wake(reason);
}

// One pass through a wrapper.  `writer` is null where nothing is recorded: the process is inert or disabled, or the
// real library calls its own public functions.
class Stay {
 public:
  Stay(calls::Entry& entry, const calls::Entry& here) : entered_(entry, here.frame, here.caller) {
    if (!entered_.nested()) writer = runtime::recorder();
  }
  bool nested() const { return entered_.nested(); }

  // The real call; errno is the host's before and after it.
  template <typename Result, typename... P>
  Result call(void* real, P... arguments) {
    host_errno_.before_real();
    Result result = reinterpret_cast<Result (*)(P...)>(real)(arguments...);
    host_errno_.after_real();
    return result;
  }

  const flight::Writer* writer = nullptr;

 private:
  calls::Entered entered_;
  calls::HostErrno host_errno_;
};

}  // namespace dshang::interpose
