// What the simulated GPU says: whole lines on stderr, each by one write(2), each beginning with "simgpu: ".
#pragma once

namespace simgpu {

// Writes a line when SIMGPU_LOG is at least `level`; level 0 is always written.
__attribute__((format(printf, 2, 3))) void log(int level, const char* format, ...);

// Says once per name that a function is not supported ("simgpu: cudnnCreate is not supported"), not at all
// under SIMGPU_QUIET=1.
void unsupported(const char* name) noexcept;

// Names an implemented function at its first call, with SIMGPU_LOG=1.
void note_first_call(const char* name);

}  // namespace simgpu
