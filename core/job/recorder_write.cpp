#include "core/job/recorder_write.h"

namespace dshang::job {

PickleWriter::PickleWriter() { out_ = "\x80\x02"; }

void PickleWriter::little_endian(std::uint64_t number, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) out_ += static_cast<char>(number >> 8 * i);
}

void PickleWriter::integer(std::int64_t number) {
  auto bits = static_cast<std::uint64_t>(number);
  if (number >= 0 && number <= UINT8_MAX) {
    out_ += 'K';
    little_endian(bits, 1);
  } else if (number >= 0 && number <= UINT16_MAX) {
    out_ += 'M';
    little_endian(bits, 2);
  } else if (number >= INT32_MIN && number <= INT32_MAX) {
    out_ += 'J';
    little_endian(bits, 4);
  } else {
    out_ += "\x8a\x08";
    little_endian(bits, 8);
  }
}

void PickleWriter::text(std::string_view text) {
  auto [known, is_new] = texts_.try_emplace(std::string(text), kept_);
  if (!is_new) return again(known->second);
  out_ += 'X';
  little_endian(text.size(), 4);
  out_ += text;
  keep();
}

void PickleWriter::open_list() { out_ += "]("; }

void PickleWriter::open_dictionary() { out_ += "}("; }

std::uint32_t PickleWriter::keep() {
  out_ += kept_ <= UINT8_MAX ? 'q' : 'r';
  little_endian(kept_, kept_ <= UINT8_MAX ? 1 : 4);
  return kept_++;
}

void PickleWriter::again(std::uint32_t kept) {
  out_ += kept <= UINT8_MAX ? 'h' : 'j';
  little_endian(kept, kept <= UINT8_MAX ? 1 : 4);
}

std::string PickleWriter::finish() {
  out_ += '.';
  return std::move(out_);
}

}  // namespace dshang::job
