// What this process knows of its interpreter; shared by call sites, stacks and arming.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"
#include "core/rank/python_layout.h"

namespace dshang::rank {

// The interpreter, if its frames may be read now; null otherwise (none, switched off, finalising).
// Found at first use; the reason for switching off is said once.
const Python* readable_python(const flight::Writer& writer);

// No frames from now on: header.python = 2, one line.
void switch_python_off(const flight::Writer& writer, const char* why);

// The first walk of the process reads through CheckedMemory and looks at every object's type; false = not to
// be walked.
bool walk_is_trusted(const flight::Writer& writer, const Python& python, std::uintptr_t thread);

// The interpreter is going away: from now on the states of threads other than the main one may be freed under
// their feet, so only the main thread still walks its own frames without looking (own_frames_are_safe()).
void python_closes();
bool own_frames_are_safe();

// Address of a file name object of dshang's own Python code; frames with it are left out of call sites.  The
// caller holds a reference for good.
void add_own_file(std::uintptr_t file_name);
bool is_own_file(std::uintptr_t file_name);

// In a forked child: what python_closes() said of the parent does not hold here.
void python_forked();

}  // namespace dshang::rank
