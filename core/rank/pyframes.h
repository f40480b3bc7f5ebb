// The Python frames of the calling thread, read without the GIL, and the Python side's arming.
//
// A thread that is inside a native call cannot change its own frame chain, so it may read it without the GIL:
// thread state, current frame, previous frames; CPython 3.8 to 3.14 (docs/call_sites.md).  Interpreter
// symbols are looked up by name at first use; nothing of Python is needed to build. Off, with one line on
// stderr and header.python = 2: free-threaded builds, unknown versions, a layout that does not read as
// expected, a walk that differs from what Python itself says.  header.python = 1 once a site was read.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"

namespace dshang::rank {

// Id of the Python call site of the calling thread: its stack, innermost frame first, frames of the probe
// left out. 0 = unknown: no interpreter, no Python thread, switched off (DSHANG_PYTHON_STACKS=0), interpreter
// finalising, table full. A new site is resolved to file, function and line here, once, while its frames keep
// the code objects alive. Threads: any, holding the GIL or not.  No lock, no allocation.  Preserves errno.
std::uint32_t call_site(const flight::Writer& writer);

// The ids that call_site() has given are void: the process wakes with another flight memory.  One thread.
void forget_sites();

// A site of one known frame (where an exception was raised); the same id for the same frame.  0 = table full.
std::uint32_t made_site(const flight::Writer& writer, std::uint32_t file, std::uint32_t function,
                        std::int32_t line);

// Arms the Python side: checks the walk against what Python itself says and, with DSHANG_PROBE=1, starts the
// probe. Both happen in a pending call on the main thread, with the GIL; a Python error there is cleared and
// named in one line. Call from the helper thread about ten times a second until it returns true: armed, or
// nothing to arm here for good. False: the interpreter is not initialised yet, the pending call has not run
// yet, or the probe asked to be called again.
bool arm_python(const flight::Writer& writer);

// In a forked child: a pending call of the parent will not run here.  Async-signal-safe.
void arming_forked();

}  // namespace dshang::rank
