// Walks the chain of Python frames of a thread and names what it finds.  Shared by call sites (own thread)
// and stacks (other threads).  No allocation, no lock; see memory_read.h for Memory.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"
#include "core/rank/python_layout.h"
#include "core/rank/python_text.h"

namespace dshang::rank {

// One frame: its code object and the place in it (an instruction's address, or f_lasti before 3.11).
struct FrameAt {
  std::uintptr_t code;
  std::int64_t position;
  friend bool operator==(const FrameAt& a, const FrameAt& b) {
    return a.code == b.code && a.position == b.position;
  }
};

// A chain longer than this is not followed further: Python's own limit is 1000 unless it was raised.
inline constexpr unsigned kLongestChain = 100000;

// Calls visit(FrameAt) for each Python frame, innermost first, until it returns false.  False = memory could
// not be read, or the chain has no end.
template <typename Memory, typename Visit>
inline bool walk_frames(const Memory& memory, const PythonLayout& l, std::uintptr_t thread, Visit visit) {
  std::uintptr_t frame;
  if (!read_value(memory, thread + l.thread_frame, &frame)) return false;
  if (l.cframe_frame != PythonLayout::kNone && frame && !read_value(memory, frame + l.cframe_frame, &frame))
    return false;
  for (unsigned n = 0; frame; ++n) {
    if (n == kLongestChain) return false;
    std::uintptr_t previous;
    FrameAt at;
    if (!read_value(memory, frame + l.frame_previous, &previous)) return false;
    std::uint8_t owner = 0;
    if (l.frame_owner != PythonLayout::kNone && !read_value(memory, frame + l.frame_owner, &owner))
      return false;
    if (l.frame_owner == PythonLayout::kNone || owner < l.first_foreign_owner) {
      if (!read_value(memory, frame + l.frame_code, &at.code)) return false;
      at.code &= l.code_mask;
      if (l.position_scale) {
        std::int32_t last;
        if (!read_value(memory, frame + l.frame_position, &last)) return false;
        at.position = last;
      } else if (!read_value(memory, frame + l.frame_position, &at.position)) {
        return false;
      }
      if (!visit(at)) return true;
    }
    frame = previous;
  }
  return true;
}

// Whether `code` is a code object with a file name and a name.
template <typename Memory>
bool is_code(const Memory& memory, const Python& python, std::uintptr_t code);

// A frame's names as they are; a missing one is empty.
struct NamedText {
  std::size_t file_length, function_length;
  std::int32_t line;
  char file[kTextBytes + 1], function[kTextBytes + 1];
};
template <typename Memory>
void read_name(const Memory& memory, const Python& python, const FrameAt& at, NamedText* name);

// Names the frame in `writer`'s strings; `*hash` is equal for equal names, in every process.
// False = it belongs to dshang's own Python (a file name "<dshang...").
template <typename Memory>
bool name_frame(const Memory& memory, const Python& python, const FrameAt& at, const flight::Writer& writer,
                flight::Frame* frame, std::uint64_t* hash);

// Where frame n of `total` named ones goes in a table of `room`, -1 = left out: of a longer chain the
// innermost ones and the kOutermost outermost are kept, so that the training loop stays visible.
inline constexpr unsigned kOutermost = 8;
inline int place_in_table(unsigned n, unsigned total, unsigned room) {
  if (total <= room || n < room - kOutermost) return static_cast<int>(n);
  if (n >= total - kOutermost) return static_cast<int>(n - (total - room));
  return -1;
}

extern template bool is_code(const OwnMemory&, const Python&, std::uintptr_t);
extern template bool is_code(const CheckedMemory&, const Python&, std::uintptr_t);
extern template void read_name(const OwnMemory&, const Python&, const FrameAt&, NamedText*);
extern template void read_name(const CheckedMemory&, const Python&, const FrameAt&, NamedText*);
extern template bool name_frame(const OwnMemory&, const Python&, const FrameAt&, const flight::Writer&,
                                flight::Frame*, std::uint64_t*);
extern template bool name_frame(const CheckedMemory&, const Python&, const FrameAt&, const flight::Writer&,
                                flight::Frame*, std::uint64_t*);

}  // namespace dshang::rank
