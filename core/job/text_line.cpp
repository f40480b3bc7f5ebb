#include "core/job/text_line.h"

#include <charconv>

namespace dshang::job {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_key_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

bool is_bare_letter(char c) {
  constexpr std::string_view kOther = "_./:<>()[]+,*@%|-";
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kOther.find(c) != kOther.npos;
}

std::string shown(std::string_view text) { return '"' + std::string(text.substr(0, 60)) + '"'; }

unsigned hex_digit(std::string_view text, std::size_t at) {
  char c = at < text.size() ? text[at] : ' ';
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  throw TextError("\\x stands before two digits 0-9, a-f");
}

// Reads from behind an opening quote; leaves `at` behind the closing one.
std::string quoted_text(std::string_view line, std::size_t& at) {
  std::string out;
  while (at < line.size()) {
    char c = line[at++];
    if (c == '"') return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    char escaped = at < line.size() ? line[at++] : ' ';
    if (escaped == 'n') {
      out += '\n';
    } else if (escaped == 't') {
      out += '\t';
    } else if (escaped == 'x') {
      out += static_cast<char>(hex_digit(line, at) * 16 + hex_digit(line, at + 1));
      at += 2;
    } else if (escaped == '"' || escaped == '\\') {
      out += escaped;
    } else {
      throw TextError("behind \\ stands one of \\ \" n t x");
    }
  }
  throw TextError("a quoted text has no end");
}

}  // namespace

std::vector<TextToken> tokens_of(std::string_view line) {
  std::vector<TextToken> tokens;
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at >= line.size() || line[at] == '#') return tokens;
    TextToken token;
    std::size_t letters = at;
    while (letters < line.size() && is_key_letter(line[letters])) ++letters;
    if (letters > at && letters < line.size() && line[letters] == '=') {
      token.key = line.substr(at, letters - at);
      at = letters + 1;
    }
    if (at < line.size() && line[at] == '"') {
      token.text = quoted_text(line, ++at);
      token.quoted = true;
      if (at < line.size() && !is_space(line[at]))
        throw TextError("white space is missing behind a quoted text");
    } else {
      std::size_t begin = at;
      while (at < line.size() && !is_space(line[at])) {
        if (line[at] == '"' || line[at] == '=')
          throw TextError("text with \" or = must be quoted: " + shown(line.substr(begin)));
        ++at;
      }
      token.text = line.substr(begin, at - begin);
      if (token.text.empty()) throw TextError("nothing stands behind " + token.key + '=');
    }
    tokens.push_back(std::move(token));
  }
}

std::string quoted_if_needed(std::string_view text) {
  bool bare = !text.empty() && text != "-";
  for (char c : text) bare = bare && is_bare_letter(c);
  if (bare) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr char kDigits[] = "0123456789abcdef";
      out += "\\x";
      out += kDigits[byte / 16];
      out += kDigits[byte % 16];
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_number(std::string_view text) { return !text.empty() && is_digit(text.front()); }

std::uint64_t to_unsigned(std::string_view text) {
  bool hex = text.starts_with("0x");
  std::string_view digits = hex ? text.substr(2) : text;
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (digits.empty() || end != digits.data() + digits.size() || error != std::errc()) {
    throw TextError(shown(text) + " is no number from 0 to 2^64-1");
  }
  return value;
}

std::int64_t to_signed(std::string_view text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size() || error != std::errc()) {
    throw TextError(shown(text) + " is no number from -2^63 to 2^63-1");
  }
  return value;
}

std::string to_hex(std::uint64_t value) {
  char digits[20];
  char* end = std::to_chars(digits, digits + sizeof digits, value, 16).ptr;
  return "0x" + std::string(digits, end);
}

std::string seconds_text(std::int64_t ns) {
  constexpr std::uint64_t kSecond = 1000000000;
  std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  std::string out = (ns < 0 ? "-" : "") + std::to_string(size / kSecond);
  std::string decimals = std::to_string(kSecond + size % kSecond).substr(1);
  while (!decimals.empty() && decimals.back() == '0') decimals.pop_back();
  return decimals.empty() ? out : out + '.' + decimals;
}

std::int64_t seconds_value(std::string_view text) {
  auto bad = [&] { return TextError(shown(text) + " is no time in seconds with at most nine decimals"); };
  bool negative = text.starts_with('-');
  std::string_view rest = negative ? text.substr(1) : text;
  std::size_t point = std::min(rest.find('.'), rest.size());
  std::string digits(rest.substr(0, point));
  std::string_view decimals = point < rest.size() ? rest.substr(point + 1) : std::string_view();
  if (digits.empty() || decimals.size() > 9 || (point < rest.size() && decimals.empty())) throw bad();
  digits += decimals;
  digits.append(9 - decimals.size(), '0');
  std::uint64_t size = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  std::uint64_t limit = (std::uint64_t{1} << 63) - (negative ? 0 : 1);
  if (end != digits.data() + digits.size() || error != std::errc() || size > limit) throw bad();
  return static_cast<std::int64_t>(negative ? 0 - size : size);
}

}  // namespace dshang::job
