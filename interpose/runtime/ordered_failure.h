// The monitor's order that this process's communicators fail (DSHANG_ON_HANG=fail).
//
// All communicators that there are, not the one concerned alone: a program asks for errors of those that it
// waits in (torch 2.14: ProcessGroupNCCL's watchdog, every 100 ms, for each call that is not complete), and
// in one hang ranks may wait in several.  A communicator made afterwards is a new beginning of the program's
// own and is left alone.
//
// The order is obeyed by the wrapper of ncclCommGetAsyncError.  It lives in this process alone: one that a
// launcher starts again knows nothing of it.
#pragma once

#include "core/flight/wire.h"
#include "core/flight/writer.h"

namespace dshang::interpose::ordered_failure {

// One more after kOrders of them is ignored.
inline constexpr unsigned kOrders = 8;

// `message` is of kind kFail.  The helper thread.
void take(const flight::Writer& writer, const flight::Message& message);

// A forked child.
void forget();

// Where DSHANG_ON_HANG=fail, in a rank's process, by the constructor of the library (nobody else is there to
// read the environment): sets TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC to kDumpMilliseconds unless the user did.
// torch's watchdog sleeps four times as long between an error and the end of the process, to let Flight
// Recorder finish: 60 s with its default of 15 000 (measured with torch 2.14.1).
void shorten_torchs_wait();
inline constexpr const char* kDumpMilliseconds = "2000";

}  // namespace dshang::interpose::ordered_failure
