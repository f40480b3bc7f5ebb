// Reads Python's strings, byte strings and line tables out of memory, without the interpreter.
//
// Memory is OwnMemory or CheckedMemory.  No allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/rank/memory_read.h"
#include "core/rank/python_layout.h"

namespace dshang::rank {

inline constexpr std::size_t kTextBytes = 1024;

// The text of a str object as UTF-8; of a longer one the last kTextBytes bytes or less (of a path the end
// tells most). Returns its length; 0 = empty, or not a readable str.
template <typename Memory>
std::size_t read_text(const Memory& memory, const Python& python, std::uintptr_t text, char* out);

// The line of a code object at the byte offset `position` of its instructions (negative: before the first
// one). 0 = the code has no line there, or it cannot be read.
template <typename Memory>
std::int32_t read_line(const Memory& memory, const PythonLayout& layout, std::uintptr_t code,
                       std::int64_t position);

extern template std::size_t read_text(const OwnMemory&, const Python&, std::uintptr_t, char*);
extern template std::size_t read_text(const CheckedMemory&, const Python&, std::uintptr_t, char*);
extern template std::int32_t read_line(const OwnMemory&, const PythonLayout&, std::uintptr_t, std::int64_t);
extern template std::int32_t read_line(const CheckedMemory&, const PythonLayout&, std::uintptr_t,
                                       std::int64_t);

}  // namespace dshang::rank
