// Where CPython keeps what a walk over Python frames needs: byte offsets inside its structures, per minor
// version, and the interpreter's functions by name.
//
// Sources: for 3.8 to 3.12 the structures in Include/cpython/{pystate,code,frameobject}.h and
// Include/internal/pycore_frame.h of the release branches (a minor version never changes them); from 3.13 on
// _Py_DebugOffsets at the start of _PyRuntime (Include/internal/pycore_debug_offsets.h), which the
// interpreter fills itself for readers like this one.
#pragma once

#include <cstdint>

#include "core/rank/memory_read.h"

namespace dshang::rank {

enum class LineFormat : std::uint8_t {
  kLnotab,     // 3.8, 3.9: Objects/lnotab_notes.txt
  kRanges,     // 3.10: PEP 626
  kLocations,  // from 3.11 on: Objects/locations.md (InternalDocs/code_objects.md)
};

struct PythonLayout {
  unsigned minor;
  LineFormat lines;
  // Thread state.
  std::uint16_t thread_next, thread_handle, thread_id;  // thread_id: kernel's, 0 = not kept (before 3.11)
  std::uint16_t thread_frame;                           // current frame, or the cframe that holds it
  std::uint16_t cframe_frame;                           // kNone = thread_frame is the frame itself
  // Frame: a PyFrameObject before 3.11, then an interpreter frame.
  std::uint16_t frame_code, frame_previous, frame_position;
  std::uint16_t frame_owner;         // kNone = all frames are Python's
  std::uint8_t first_foreign_owner;  // owners from this on are the interpreter's own frames
  std::uint8_t position_scale;       // of f_lasti: bytes per unit; 0 = an instruction pointer
  std::uintptr_t code_mask;          // clears a reference's tag bits
  // Code object.
  std::uint16_t code_file, code_name, code_qualname, code_first_line, code_lines;
  std::uint16_t code_instructions, code_version;  // kNone = none
  // Objects.
  std::uint16_t object_type, bytes_size, bytes_data, text_length, text_state, text_header;

  static constexpr std::uint16_t kNone = 0xffff;
};

// The interpreter's functions; void* stands for its structures.
struct PythonFunctions {
  void* (*this_thread)();  // PyGILState_GetThisThreadState
  int (*is_finalizing)();  // may be null
  int (*is_initialized)();
  const char* (*version)();  // Py_GetVersion
  void* (*main_interpreter)();
  void* (*first_thread)(void*);         // PyInterpreterState_ThreadHead
  std::uintptr_t code_type, text_type;  // &PyCode_Type, &PyUnicode_Type
};

struct Python {
  PythonLayout layout;
  PythonFunctions functions;
};

// Fills `python` for the interpreter in this process.  Null = done; else why frames cannot be read: "" when
// there is no interpreter at all, otherwise a reason for one line.
const char* find_python(Python* python);

// The layout of a version from 3.8 to 3.12; false = not known here.
bool fixed_layout(unsigned minor, PythonLayout* layout);

// The layout that a _Py_DebugOffsets of 3.13 or 3.14 at `offsets` describes; false = not what it should be.
bool described_layout(const std::uint64_t* offsets, unsigned minor, PythonLayout* layout);

}  // namespace dshang::rank
