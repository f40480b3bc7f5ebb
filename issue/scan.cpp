#include "issue/scan.h"

#include <algorithm>
#include <cctype>

namespace dshang::issue {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

std::size_t begin_of_line(std::string_view text, std::size_t at) {
  std::size_t first = at - std::min(at, kLongestWord);
  std::size_t line = text.substr(first, at - first).rfind('\n');
  return line == kNone ? first : first + line + 1;
}

std::string_view before_in_line(std::string_view text, std::size_t at, std::size_t most) {
  std::string_view before = text.substr(at - std::min(at, most), std::min(at, most));
  std::size_t line = before.rfind('\n');
  return line == kNone ? before : before.substr(line + 1);
}

std::size_t end_of_line(std::string_view text, std::size_t at) {
  text = text.substr(0, std::min(text.size(), at) + kLongestWord);
  return std::min(text.find('\n', at), text.size());
}

bool ends_line(std::string_view text, std::size_t at) {
  return at >= text.size() || text[at] == '\n' || text[at] == '\r';
}

std::size_t behind_quote(std::string_view text, std::size_t at) {
  std::size_t mark = at;
  while (mark < text.size() && text[mark] == '\\') ++mark;
  return mark < text.size() && is_quote(text[mark]) ? mark + 1 : at;
}

bool among(std::string_view word, std::string_view words) {
  for (std::size_t from = 0; from < words.size();) {
    std::size_t end = std::min(words.find(' ', from), words.size());
    if (words.substr(from, end - from) == word) return true;
    from = end + 1;
  }
  return false;
}

std::size_t end_of_word(std::string_view text, std::size_t at) {
  text = text.substr(0, std::min(text.size(), at) + kLongestWord);
  while (at < text.size() && !is_space(text[at]) && !is_quote(text[at])) ++at;
  return at;
}

}  // namespace dshang::issue
