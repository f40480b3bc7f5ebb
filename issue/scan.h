// Steps over a text that is read for names and values.
#pragma once

#include <cstddef>
#include <string_view>

namespace dshang::issue {

inline constexpr auto kNone = std::string_view::npos;
// A word that is longer is none; and a line is looked at no further, so that one of megabytes takes no hours.
inline constexpr std::size_t kLongestWord = 1 << 16;

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
inline bool is_quote(char c) { return c == '"' || c == '\'' || c == '`'; }
bool is_space(char c);  // a blank, or the end of a line

std::size_t skip_blanks(std::string_view text, std::size_t at);
std::size_t skip_spaces(std::string_view text, std::size_t at);

// At most kLongestWord away.
std::size_t begin_of_line(std::string_view text, std::size_t at);
// Of the same line, at most `most` bytes.
std::string_view before_in_line(std::string_view text, std::size_t at, std::size_t most);
std::size_t end_of_line(std::string_view text, std::size_t at);
bool ends_line(std::string_view text, std::size_t at);

// A quotation mark, which may stand behind backslashes: the text may be one inside another.
std::size_t behind_quote(std::string_view text, std::size_t at);

// Whether a word is one of `words`, which are separated by blanks: the cells of tables.
bool among(std::string_view word, std::string_view words);

// Up to a blank or a quotation mark.
std::size_t end_of_word(std::string_view text, std::size_t at);

}  // namespace dshang::issue
