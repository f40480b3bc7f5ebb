// Lines of the readable form of records (dump.h): words, key=value pairs, quoted text, times.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dshang::job {

// What is wrong with a line, in words and without the line's number.
class TextError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct TextToken {
  std::string key;  // empty for a bare word
  std::string text;
  bool quoted = false;
  bool is_none() const { return !quoted && text == "-"; }
};

// Splits a line at white space; `#` where a token could start begins a comment.
std::vector<TextToken> tokens_of(std::string_view line);

// `text` as a token: bare where that is unambiguous, else quoted.
std::string quoted_if_needed(std::string_view text);

// Decimal, or hexadecimal after 0x.
std::uint64_t to_unsigned(std::string_view text);
std::int64_t to_signed(std::string_view text);
bool is_number(std::string_view text);
std::string to_hex(std::uint64_t value);

// Seconds with up to nine decimals <-> nanoseconds; exact for every 64-bit value.
std::string seconds_text(std::int64_t ns);
std::int64_t seconds_value(std::string_view text);

}  // namespace dshang::job
