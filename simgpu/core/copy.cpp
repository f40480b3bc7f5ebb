#include "simgpu/core/copy.h"

#include <cstring>
#include <memory>
#include <vector>

#include "simgpu/core/bytes.h"
#include "simgpu/core/ledger.h"

namespace simgpu {
namespace {

bool claimed_on_device(int kind, bool destination) {
  if (kind == kDeviceToDevice) return true;
  return destination ? kind == kHostToDevice : kind == kDeviceToHost;
}

// Looks an end of a copy up. `pageable`: memory that CUDA does not know.
Error look_up(const void* address, size_t bytes, bool claimed, bool* pageable) {
  *pageable = !find_block(address, nullptr);
  if (*pageable) return claimed ? kInvalidValue : kSuccess;
  return covered(address, bytes) ? kSuccess : kInvalidValue;
}

Error wait_unless_capturing(void* stream) {
  if (is_capturing(stream)) return kSuccess;
  StreamMark mark;
  if (Error error = mark_stream(stream, &mark)) return error;
  wait_for(mark);
  return kSuccess;
}

bool idle(void* stream) {
  StreamMark mark;
  return mark_stream(stream, &mark) == kSuccess && reached(mark);
}

Error queue_snapshot_copy(void* to, const void* from, size_t bytes, void* stream) {
  const char* begin = static_cast<const char*>(from);
  auto snapshot = std::make_shared<const std::vector<char>>(begin, begin + bytes);
  return enqueue(
      stream, [to, snapshot, bytes] { copy_bytes(to, snapshot->data(), bytes); }, Run::kInlineIfIdle);
}

}  // namespace

Error queue_copy(void* to, const void* from, size_t bytes, int kind, void* stream) {
  if (kind < kHostToHost || kind > kAnyToAny) return kInvalidMemcpyDirection;
  if (bytes == 0) return kSuccess;
  bool to_pageable = false;
  bool from_pageable = false;
  if (Error error = look_up(to, bytes, claimed_on_device(kind, true), &to_pageable)) return error;
  if (Error error = look_up(from, bytes, claimed_on_device(kind, false), &from_pageable)) return error;
  if (from_pageable && !idle(stream) && !is_capturing(stream)) {
    if (Error error = queue_snapshot_copy(to, from, bytes, stream)) return error;
  } else {
    const auto copy = [to, from, bytes] { copy_bytes(to, from, bytes); };
    if (Error error = enqueue(stream, copy, Run::kInlineIfIdle)) return error;
  }
  return to_pageable ? wait_unless_capturing(stream) : kSuccess;
}

Error queue_copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, int kind, void* stream) {
  if (kind < kHostToHost || kind > kAnyToAny) return kInvalidMemcpyDirection;
  if (width == 0 || height == 0) return kSuccess;
  if (width > to_pitch || width > from_pitch) return kInvalidValue;
  bool to_pageable = false;
  bool from_pageable = false;
  const size_t to_extent = to_pitch * (height - 1) + width;
  const size_t from_extent = from_pitch * (height - 1) + width;
  if (Error error = look_up(to, to_extent, claimed_on_device(kind, true), &to_pageable)) return error;
  if (Error error = look_up(from, from_extent, claimed_on_device(kind, false), &from_pageable)) return error;
  const auto copy = [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
                   width);
    }
  };
  if (Error error = enqueue(stream, copy, Run::kInlineIfIdle)) return error;
  return to_pageable || from_pageable ? wait_unless_capturing(stream) : kSuccess;
}

Error queue_fill(void* address, int value, size_t bytes, void* stream) {
  if (bytes == 0) return kSuccess;
  bool pageable = false;
  if (Error error = look_up(address, bytes, true, &pageable)) return error;
  return enqueue(
      stream, [=] { fill_bytes(address, value, bytes); }, Run::kInlineIfIdle);
}

}  // namespace simgpu
