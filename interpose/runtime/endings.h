// How the process ends, noted in flight memory at the last moment.  What the wrappers call is in api.h.
//
// exit(): an on_exit handler.  Signals: a handler for SIGTERM, SIGINT, SIGABRT, SIGSEGV and SIGBUS where the
// disposition is the default one when the process wakes; it notes the signal, restores the default and lets
// it happen again, so that the wait status and the core file are those without dshang.  A process that is to
// end by SIGTERM or SIGINT before its memory was handed over does so first, as one that calls exit()
// (helper.h).
#pragma once

namespace dshang::interpose::endings {

// Once a process; a forked child inherits handlers that do nothing there.
void install();

}  // namespace dshang::interpose::endings
