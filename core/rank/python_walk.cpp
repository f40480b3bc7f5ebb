#include "core/rank/python_walk.h"

#include <string.h>

#include "core/flight/hash.h"

namespace dshang::rank {

template <typename Memory>
bool is_code(const Memory& memory, const Python& python, std::uintptr_t code) {
  const PythonLayout& l = python.layout;
  std::uintptr_t type, file, name, file_type, name_type;
  return code && read_value(memory, code + l.object_type, &type) && type == python.functions.code_type &&
         read_value(memory, code + l.code_file, &file) && read_value(memory, code + l.code_name, &name) &&
         file && name && read_value(memory, file + l.object_type, &file_type) &&
         file_type == python.functions.text_type && read_value(memory, name + l.object_type, &name_type) &&
         name_type == python.functions.text_type;
}

template <typename Memory>
void read_name(const Memory& memory, const Python& python, const FrameAt& at, NamedText* name) {
  const PythonLayout& l = python.layout;
  std::uintptr_t file, function;
  std::uint16_t function_at = l.code_qualname != PythonLayout::kNone ? l.code_qualname : l.code_name;
  name->file_length =
      read_value(memory, at.code + l.code_file, &file) ? read_text(memory, python, file, name->file) : 0;
  name->function_length = read_value(memory, at.code + function_at, &function)
                              ? read_text(memory, python, function, name->function)
                              : 0;
  std::int64_t offset =
      l.position_scale ? at.position * l.position_scale
                       : at.position - static_cast<std::int64_t>(at.code) - std::int64_t{l.code_instructions};
  name->line = read_line(memory, l, at.code, offset);
}

template <typename Memory>
bool name_frame(const Memory& memory, const Python& python, const FrameAt& at, const flight::Writer& writer,
                flight::Frame* frame, std::uint64_t* hash) {
  NamedText name;
  read_name(memory, python, at, &name);
  if (name.file_length >= 7 && memcmp(name.file, "<dshang", 7) == 0) return false;
  *hash = flight::fnv1a(name.file, name.file_length);
  *hash = flight::mix(flight::fnv1a(name.function, name.function_length, *hash),
                      static_cast<std::uint32_t>(name.line));
  *frame = {writer.string(name.file, name.file_length), writer.string(name.function, name.function_length),
            name.line};
  return true;
}

template bool is_code(const OwnMemory&, const Python&, std::uintptr_t);
template bool is_code(const CheckedMemory&, const Python&, std::uintptr_t);
template void read_name(const OwnMemory&, const Python&, const FrameAt&, NamedText*);
template void read_name(const CheckedMemory&, const Python&, const FrameAt&, NamedText*);
template bool name_frame(const OwnMemory&, const Python&, const FrameAt&, const flight::Writer&,
                         flight::Frame*, std::uint64_t*);
template bool name_frame(const CheckedMemory&, const Python&, const FrameAt&, const flight::Writer&,
                         flight::Frame*, std::uint64_t*);

}  // namespace dshang::rank
