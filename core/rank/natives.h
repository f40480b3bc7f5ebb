// The native side of the Python probe: the object that its arm(native) is given.
//
//   intern(text) -> id              id of a name; all ids below are such
//   visit(module, phase, training)  a module is entered
//   exit_module()
//   step(number)  micro_step(number)
//   phase_push(phase)  phase_pop()
//   gather(params_hash, ids_text)   ZeRO-3 gathers parameters
//   note(key, value)                texts
//   exception(type, message, file, function, line)   ids or texts, and a line number
//   loop_end(length)                text, or ""
//   trace_mode(mode)
//   teardown(last)                  the process group goes away; last = 1: the interpreter does
//   memory(reserved, allocated)     peaks of the step that ends, bytes; before step()
//   numerics                        no function: 1, or 0 with DSHANG_NUMERICS=0
//   memory_phase(phase, peak, reserved, allocated)   at the end of a phase: bytes, the last two as they are now
//   batch(sizes...)                 of the largest tensor that a training forward is given, at most 4; after step()
//
// None of them raises; an argument of another type counts as 0 or "".  They do nothing while the process is
// inert, and ids that were given before a fork mean nothing in the child. Threads: any, with the GIL.
#pragma once

#include "core/rank/python_api.h"

namespace dshang::rank {

// A new module object with these functions; null = a Python error is set.
Object* make_native(const PythonApi& api);

// frames() -> [(file, function, line), ...] of the calling thread, innermost first, at most 64: for the
// self-check.
Object* make_frames_function(const PythonApi& api);

// own_file(text): frames of code with this very file name object belong to dshang.
Object* make_own_file_function(const PythonApi& api);

}  // namespace dshang::rank
