#include "issue/unescape.h"

#include <cctype>
#include <charconv>
#include <cstdio>

namespace dshang::issue {
namespace {

struct Escape {
  std::string_view mark;
  std::size_t digits;
};
constexpr Escape kEscapes[] = {{"\\u", 4}, {"\\x", 2}, {"%", 2}};

// How many bytes the escape at `at` takes, 0 = none is there.
std::size_t length_at(std::string_view text, std::size_t at, char* letter) {
  if (text.substr(at, 2) == "\\/") return *letter = '/', 2;
  for (const Escape& escape : kEscapes) {
    if (text.substr(at, escape.mark.size()) != escape.mark) continue;
    std::string_view digits = text.substr(at + escape.mark.size(), escape.digits);
    unsigned code = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || end != digits.data() + escape.digits || code < ' ' || code > '~') return 0;
    *letter = static_cast<char>(code);
    return escape.mark.size() + escape.digits;
  }
  return 0;
}

}  // namespace

Unescaped unescape(std::string_view text) {
  Unescaped result;
  if (text.find_first_of("\\%") == text.npos) return result;
  for (std::size_t at = 0; at < text.size();) {
    char letter = text[at];
    std::size_t length = letter == '\\' || letter == '%' ? length_at(text, at, &letter) : 0;
    result.changed = result.changed || length > 0;
    result.text += letter;
    result.at.push_back(at);
    at += length > 0 ? length : 1;
  }
  result.at.push_back(text.size());
  return result;
}

std::string as_in_address(std::string_view text) {
  std::string result;
  for (char c : text) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    bool plain = std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-_.~").find(c) != text.npos;
    result += plain ? std::string(1, c) : code;
  }
  return result;
}

std::string as_in_json(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? "\\n" : std::string(1, c);
  }
  return result;
}

std::string as_in_base64(std::string_view text) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  unsigned held = 0;
  int bits = 0;
  for (unsigned char c : text) {
    held = (held << 8 | c) & 0xffff;
    for (bits += 8; bits >= 6; bits -= 6) result += kLetters[held >> (bits - 6) & 63];
  }
  if (bits > 0) result += kLetters[held << (6 - bits) & 63];
  return result;
}

}  // namespace dshang::issue
