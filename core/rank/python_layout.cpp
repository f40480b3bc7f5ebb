#include "core/rank/python_layout.h"

#include <string.h>

#include "core/rank/base_libc.h"

namespace dshang::rank {
namespace {

constexpr std::uint16_t kNone = PythonLayout::kNone;

// Frame objects: 3.8, 3.9, 3.10.
PythonLayout with_frame_objects(unsigned minor) {
  PythonLayout l{};
  l.minor = minor;
  l.lines = minor < 10 ? LineFormat::kLnotab : LineFormat::kRanges;
  l.thread_next = 8;
  l.thread_handle = 176;
  l.thread_frame = 24;
  l.cframe_frame = kNone;
  l.frame_code = 32;
  l.frame_previous = 24;
  l.frame_position = minor < 10 ? 104 : 96;
  l.frame_owner = kNone;
  l.position_scale = minor < 10 ? 1 : 2;
  l.code_mask = ~std::uintptr_t{0};
  l.code_file = 104;
  l.code_name = 112;
  l.code_qualname = kNone;
  l.code_first_line = 40;
  l.code_lines = 120;
  l.code_instructions = l.code_version = kNone;
  l.text_header = 48;
  return l;
}

// Interpreter frames behind a cframe: 3.11, 3.12.
PythonLayout with_cframe(unsigned minor) {
  PythonLayout l{};
  bool first = minor == 11;
  l.minor = minor;
  l.lines = LineFormat::kLocations;
  l.thread_next = 8;
  l.thread_handle = first ? 152 : 136;
  l.thread_id = first ? 160 : 144;
  l.thread_frame = 56;
  l.cframe_frame = first ? 8 : 0;
  l.frame_code = first ? 32 : 0;
  l.frame_previous = first ? 48 : 8;
  l.frame_position = 56;
  l.frame_owner = first ? kNone : 70;
  l.first_foreign_owner = 3;
  l.code_mask = ~std::uintptr_t{0};
  l.code_file = 112;
  l.code_name = 120;
  l.code_qualname = 128;
  l.code_first_line = first ? 72 : 68;
  l.code_lines = 136;
  l.code_instructions = first ? 184 : 192;
  l.code_version = first ? kNone : 92;
  l.text_header = first ? 48 : 40;
  return l;
}

void common_objects(PythonLayout* l) {
  l->object_type = 8;
  l->bytes_size = 16;
  l->bytes_data = 32;
  l->text_length = 16;
  l->text_state = 32;
}

// Minor version of "3.11.7 (main, ...)"; 0 = not Python 3.
unsigned minor_of(const char* version) {
  if (strncmp(version, "3.", 2) != 0) return 0;
  unsigned minor = 0;
  for (const char* at = version + 2; *at >= '0' && *at <= '9'; ++at) minor = minor * 10 + unsigned(*at - '0');
  return minor;
}

template <typename Function>
bool find(Function* function, const char* name) {
  *function = reinterpret_cast<Function>(find_symbol(name));
  return *function != nullptr;
}

}  // namespace

bool fixed_layout(unsigned minor, PythonLayout* layout) {
  if (minor < 8 || minor > 12) return false;
  *layout = minor < 11 ? with_frame_objects(minor) : with_cframe(minor);
  common_objects(layout);
  return true;
}

// The table is a row of 64-bit words in a fixed order; 3.14 put three words into the interpreter's part, two
// into the frame's, one into the code object's, and the four of sets before dicts.
bool described_layout(const std::uint64_t* offsets, unsigned minor, PythonLayout* layout) {
  if (minor != 13 && minor != 14) return false;
  if (memcmp(offsets, "xdebugpy", 8) != 0 || ((offsets[1] >> 16) & 0xff) != minor) return false;
  const std::uint64_t* runtime = offsets + 3;
  const std::uint64_t* interpreter = runtime + 3;
  const std::uint64_t* thread = interpreter + (minor == 13 ? 13 : 16);
  const std::uint64_t* frame = thread + 9;
  const std::uint64_t* code = frame + (minor == 13 ? 6 : 8);
  const std::uint64_t* object = code + (minor == 13 ? 10 : 11);
  const std::uint64_t* list = object + 2 + 4 + 3;            // after types and tuples
  const std::uint64_t* dict = list + (minor == 13 ? 3 : 7);  // after sets, too
  const std::uint64_t* bytes = dict + 3 + 2 + 3;             // after floats and ints
  const std::uint64_t* text = bytes + 3;
  for (const std::uint64_t* word = thread; word < text + 4; ++word) {
    if (*word >= kNone) return false;
  }
  auto at = [](const std::uint64_t* table, unsigned index) {
    return static_cast<std::uint16_t>(table[index]);
  };
  PythonLayout l{};
  l.minor = minor;
  l.lines = LineFormat::kLocations;
  l.thread_next = at(thread, 2);
  l.thread_frame = at(thread, 4);
  l.thread_handle = at(thread, 5);
  l.thread_id = at(thread, 6);
  l.cframe_frame = kNone;
  l.frame_previous = at(frame, 1);
  l.frame_code = at(frame, 2);
  l.frame_position = at(frame, 3);
  l.frame_owner = at(frame, 5);
  l.first_foreign_owner = 3;
  l.code_mask = minor == 13 ? ~std::uintptr_t{0} : ~std::uintptr_t{3};
  l.code_file = at(code, 1);
  l.code_name = at(code, 2);
  l.code_qualname = at(code, 3);
  l.code_lines = at(code, 4);
  l.code_first_line = at(code, 5);
  l.code_instructions = at(code, 9);
  // co_version is the word before co_localsplusnames; the table does not name it.
  l.code_version = static_cast<std::uint16_t>(at(code, 7) - 4);
  l.object_type = at(object, 1);
  l.bytes_size = at(bytes, 1);
  l.bytes_data = at(bytes, 2);
  l.text_state = at(text, 1);
  l.text_length = at(text, 2);
  l.text_header = at(text, 3);
  *layout = l;
  return true;
}

const char* find_python(Python* python) {
  PythonFunctions& f = python->functions;
  if (!find(&f.is_initialized, "Py_IsInitialized") || !find(&f.version, "Py_GetVersion")) return "";
  if (!find(&f.is_finalizing, "Py_IsFinalizing")) find(&f.is_finalizing, "_Py_IsFinalizing");
  f.code_type = reinterpret_cast<std::uintptr_t>(find_symbol("PyCode_Type"));
  f.text_type = reinterpret_cast<std::uintptr_t>(find_symbol("PyUnicode_Type"));
  if (!find(&f.this_thread, "PyGILState_GetThisThreadState") || !f.code_type || !f.text_type ||
      !find(&f.main_interpreter, "PyInterpreterState_Main") ||
      !find(&f.first_thread, "PyInterpreterState_ThreadHead")) {
    return "this Python does not export what is needed";
  }
  const char* version = f.version();
  unsigned minor = minor_of(version);
  if (strstr(version, "free-threading")) return "this Python is a free-threaded build";
  if (fixed_layout(minor, &python->layout)) return nullptr;
  const std::uint64_t* offsets = static_cast<const std::uint64_t*>(find_symbol("_PyRuntime"));
  if (!offsets || (minor != 13 && minor != 14)) return "this version of Python is not known";
  if (offsets[2] != 0) return "this Python is a free-threaded build";
  if (!described_layout(offsets, minor, &python->layout))
    return "this Python describes itself in an unknown way";
  return nullptr;
}

}  // namespace dshang::rank
