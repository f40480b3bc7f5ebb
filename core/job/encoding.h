// How the bytes of a text are to be read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dshang::job {

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 = none (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text);

// Where the first byte stands that belongs to no well-formed sequence; npos: there is none.
std::size_t first_broken(std::string_view text);

// "UTF-16", "UTF-16LE", "UTF-32BE", …, as iconv names it, where the beginning of the text looks like it; ""
// elsewhere.
std::string wide_encoding(std::string_view text);

// "it looks like UTF-16: iconv -f UTF-16 -t UTF-8 makes `what` of it"; "" where it is not wide.
std::string wide_hint(std::string_view text, std::string_view what);

// Takes a byte order mark off; true where there was one.
bool take_mark(std::string_view* text);

}  // namespace dshang::job
