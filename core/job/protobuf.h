// Writes messages of protocol buffers, as far as traces need them.
//
// The form is that of https://protobuf.dev/programming-guides/encoding/: a field is its number and wire type
// as a varint, then a varint, or a length and so many bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dshang::job {

class Message {
 public:
  // uint64, int64, enums, bool.  Negative int64 are passed as their two's complement.
  Message& number(std::uint32_t field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& text(std::uint32_t field, std::string_view bytes) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(bytes.size());
    bytes_ += bytes;
    return *this;
  }
  Message& message(std::uint32_t field, const Message& inner) { return text(field, inner.bytes_); }

  bool empty() const { return bytes_.empty(); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace dshang::job
