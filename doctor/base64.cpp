#include "doctor/base64.h"

#include <algorithm>
#include <array>

namespace dshang::doctor {
namespace {

// What a letter stands for; -1 none.
constexpr std::array<signed char, 256> letter_values() {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::array<signed char, 256> values{};
  for (signed char& value : values) value = -1;
  for (std::size_t i = 0; i < kLetters.size(); ++i)
    values[static_cast<unsigned char>(kLetters[i])] = static_cast<signed char>(i);
  values['+'] = values['-'] = 62;
  values['/'] = values['_'] = 63;
  return values;
}

int letter_value(char c) {
  static constexpr std::array<signed char, 256> kValues = letter_values();
  return kValues[static_cast<unsigned char>(c)];
}

}  // namespace

bool in_base64(char c) { return letter_value(c) >= 0; }

std::string from_base64(std::string_view letters) {
  std::string text;
  unsigned bits = 0, held = 0;
  for (char c : letters) {
    held = (held << 6 | static_cast<unsigned>(letter_value(c))) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    text += static_cast<char>(held >> bits & 0xff);
  }
  return text;
}

bool readable_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= ' ' ? c != 0x7f : c == '\n' || c == '\r' || c == '\t';
  });
}

std::optional<std::string> text_in_base64(std::string_view whole) {
  std::string_view letters = whole.substr(0, whole.find_last_not_of('=') + 1);
  if (letters.empty() || whole.size() % 4 != 0 || whole.size() - letters.size() > 2) return std::nullopt;
  if (!std::all_of(letters.begin(), letters.end(), in_base64)) return std::nullopt;
  std::string text = from_base64(letters);
  return readable_text(text) ? std::optional(text) : std::nullopt;
}

}  // namespace dshang::doctor
