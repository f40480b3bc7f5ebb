#include "core/rank/python_walk.h"

#include <string.h>

namespace dshang::rank {

template <typename Memory>
bool is_code(const Memory& memory, const Python& python, std::uintptr_t code) {
  const PythonLayout& l = python.layout;
  std::uintptr_t type, file, name, file_type, name_type;
  return code && read_value(memory, code + l.object_type, &type) && type == python.functions.code_type &&
         read_value(memory, code + l.code_file, &file) && read_value(memory, code + l.code_name, &name) && file && name &&
         read_value(memory, file + l.object_type, &file_type) && file_type == python.functions.text_type &&
         read_value(memory, name + l.object_type, &name_type) && name_type == python.functions.text_type;
}

template <typename Memory>
bool name_frame(const Memory& memory, const Python& python, const FrameAt& at, const flight::Writer& writer,
                flight::Frame* frame) {
  const PythonLayout& l = python.layout;
  char text[kTextBytes];
  std::uintptr_t object;
  *frame = {};
  if (!read_value(memory, at.code + l.code_file, &object)) return true;
  std::size_t length = read_text(memory, python, object, text);
  if (length >= 7 && memcmp(text, "<dshang", 7) == 0) return false;
  frame->file = writer.string(text, length);
  std::uint16_t name = l.code_qualname != PythonLayout::kNone ? l.code_qualname : l.code_name;
  if (read_value(memory, at.code + name, &object)) frame->function = writer.string(text, read_text(memory, python, object, text));
  std::int64_t offset = l.position_scale
                            ? at.position * l.position_scale
                            : at.position - static_cast<std::int64_t>(at.code) - std::int64_t{l.code_instructions};
  frame->line = read_line(memory, l, at.code, offset);
  return true;
}

template bool is_code(const OwnMemory&, const Python&, std::uintptr_t);
template bool is_code(const CheckedMemory&, const Python&, std::uintptr_t);
template bool name_frame(const OwnMemory&, const Python&, const FrameAt&, const flight::Writer&, flight::Frame*);
template bool name_frame(const CheckedMemory&, const Python&, const FrameAt&, const flight::Writer&, flight::Frame*);

}  // namespace dshang::rank
