#include "core/rank/python_text.h"

#include <string.h>

namespace dshang::rank {
namespace {

struct TextState {
  unsigned kind;  // bytes per character
  bool compact, ascii;
};

// The bits kind:3, compact:1, ascii:1 follow `interned`, which has 2 bits up to 3.13 and 16 in 3.14; what
// follows them is zero in either, and kind never is.
bool read_state(std::uint32_t word, TextState* state) {
  for (unsigned shift = 2; shift <= 16; shift += 14) {
    std::uint32_t bits = word >> shift;
    unsigned kind = bits & 7;
    if ((kind == 1 || kind == 2 || kind == 4) && (bits & 8)) {
      *state = {kind, true, (bits & 16) != 0};
      return true;
    }
  }
  return false;
}

unsigned put_utf8(std::uint32_t c, char* out) {
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  if (c < 0x800) {
    out[0] = static_cast<char>(0xc0 | (c >> 6));
    out[1] = static_cast<char>(0x80 | (c & 0x3f));
    return 2;
  }
  if (c >= 0xd800 && c < 0xe000) c = 0xfffd;  // surrogates (undecodable bytes of a path) have no UTF-8
  if (c < 0x10000) {
    out[0] = static_cast<char>(0xe0 | (c >> 12));
    out[1] = static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out[2] = static_cast<char>(0x80 | (c & 0x3f));
    return 3;
  }
  out[0] = static_cast<char>(0xf0 | (c >> 18));
  out[1] = static_cast<char>(0x80 | ((c >> 12) & 0x3f));
  out[2] = static_cast<char>(0x80 | ((c >> 6) & 0x3f));
  out[3] = static_cast<char>(0x80 | (c & 0x3f));
  return 4;
}

// A line table from its start, some bytes at a time.
template <typename Memory>
class Table {
 public:
  Table(const Memory& memory, std::uintptr_t from, std::int64_t bytes)
      : memory_(memory), from_(from), left_(bytes) {}

  // -1 = the end, or unreadable.
  int next() {
    if (at_ == filled_ && !fill()) return -1;
    return buffer_[at_++];
  }
  int peek() {
    if (at_ == filled_ && !fill()) return -1;
    return buffer_[at_];
  }

 private:
  bool fill() {
    std::int64_t part =
        left_ < static_cast<std::int64_t>(sizeof buffer_) ? left_ : static_cast<std::int64_t>(sizeof buffer_);
    if (part <= 0 || !memory_.read(from_, buffer_, static_cast<std::size_t>(part))) return false;
    from_ += static_cast<std::uintptr_t>(part);
    left_ -= part;
    at_ = 0;
    filled_ = static_cast<unsigned>(part);
    return true;
  }

  const Memory& memory_;
  std::uintptr_t from_;
  std::int64_t left_;
  unsigned at_ = 0, filled_ = 0;
  unsigned char buffer_[256];
};

template <typename Memory>
std::int64_t line_by_lnotab(Table<Memory>& table, std::int64_t line, std::int64_t position) {
  std::int64_t start = 0;
  for (;;) {
    int step = table.next(), lines = table.next();
    if (step < 0 || lines < 0) return line;
    start += step;
    if (start > position) return line;
    line += static_cast<signed char>(lines);
  }
}

template <typename Memory>
std::int64_t line_by_ranges(Table<Memory>& table, std::int64_t line, std::int64_t position) {
  std::int64_t end = 0;
  for (;;) {
    int step = table.next(), lines = table.next();
    if (step < 0 || lines < 0) return 0;
    bool has_line = lines != 0x80;
    if (has_line) line += static_cast<signed char>(lines);
    end += step;
    if (position < end) return has_line ? line : 0;
  }
}

template <typename Memory>
std::int64_t signed_number(Table<Memory>& table) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 60; shift += 6) {
    int byte = table.next();
    if (byte < 0) return 0;
    value |= static_cast<std::uint64_t>(byte & 0x3f) << shift;
    if (!(byte & 0x40)) break;
  }
  std::int64_t magnitude = static_cast<std::int64_t>(value >> 1);
  return value & 1 ? -magnitude : magnitude;
}

template <typename Memory>
std::int64_t line_by_locations(Table<Memory>& table, std::int64_t line, std::int64_t position) {
  std::int64_t end = 0;
  for (;;) {
    int first = table.next();
    if (first < 0) return 0;
    int code = (first >> 3) & 15;
    if (code == 13 || code == 14) {
      line += signed_number(table);
    } else if (code >= 10 && code <= 12) {
      line += code - 10;
    }
    end += ((first & 7) + 1) * 2;
    if (position < end) return code == 15 ? 0 : line;
    while (table.peek() >= 0 && !(table.peek() & 0x80)) table.next();  // columns
  }
}

}  // namespace

template <typename Memory>
std::size_t read_text(const Memory& memory, const Python& python, std::uintptr_t text, char* out) {
  const PythonLayout& l = python.layout;
  std::uintptr_t type;
  std::int64_t length;
  std::uint32_t word;
  TextState state;
  if (!text || !read_value(memory, text + l.object_type, &type) || type != python.functions.text_type ||
      !read_value(memory, text + l.text_length, &length) || !read_value(memory, text + l.text_state, &word) ||
      !read_state(word, &state) || length <= 0) {
    return 0;
  }
  // Behind a non-ASCII text's header come utf8_length and utf8; up to 3.11 wstr_length, too.
  std::uintptr_t data = text + l.text_header + (state.ascii ? 0u : l.minor < 12 ? 24u : 16u);
  std::int64_t most = static_cast<std::int64_t>(kTextBytes) / (state.ascii ? 1 : 4);
  if (length > most) {
    data += static_cast<std::uintptr_t>(length - most) * state.kind;
    length = most;
  }
  if (state.ascii)
    return memory.read(data, out, static_cast<std::size_t>(length)) ? static_cast<std::size_t>(length) : 0;
  std::size_t used = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    std::uint32_t c = 0;  // the machines this is built for are little-endian
    if (!memory.read(data + static_cast<std::uintptr_t>(i) * state.kind, &c, state.kind)) return 0;
    used += put_utf8(c, out + used);
  }
  return used;
}

template <typename Memory>
std::int32_t read_line(const Memory& memory, const PythonLayout& layout, std::uintptr_t code,
                       std::int64_t position) {
  std::int32_t first_line;
  std::uintptr_t table;
  std::int64_t bytes;
  if (!read_value(memory, code + layout.code_first_line, &first_line)) return 0;
  if (position < 0) return first_line;
  if (!read_value(memory, code + layout.code_lines, &table) || !table ||
      !read_value(memory, table + layout.bytes_size, &bytes)) {
    return 0;
  }
  Table<Memory> rows(memory, table + layout.bytes_data, bytes);
  std::int64_t line = layout.lines == LineFormat::kLnotab   ? line_by_lnotab(rows, first_line, position)
                      : layout.lines == LineFormat::kRanges ? line_by_ranges(rows, first_line, position)
                                                            : line_by_locations(rows, first_line, position);
  return line > 0 && line <= INT32_MAX ? static_cast<std::int32_t>(line) : 0;
}

template std::size_t read_text(const OwnMemory&, const Python&, std::uintptr_t, char*);
template std::size_t read_text(const CheckedMemory&, const Python&, std::uintptr_t, char*);
template std::int32_t read_line(const OwnMemory&, const PythonLayout&, std::uintptr_t, std::int64_t);
template std::int32_t read_line(const CheckedMemory&, const PythonLayout&, std::uintptr_t, std::int64_t);

}  // namespace dshang::rank
