#include "core/job/encoding.h"

#include <algorithm>
#include <array>

namespace dshang::job {
namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";
constexpr std::size_t kLooked = 4096;  // bytes that are looked at
constexpr std::size_t kFewest = 8;     // without a mark

struct Mark {
  std::string_view bytes;
  const char* name;
};
// The longer ones first.
constexpr Mark kWideMarks[] = {{{"\xff\xfe\0\0", 4}, "UTF-32"},
                               {{"\0\0\xfe\xff", 4}, "UTF-32"},
                               {"\xff\xfe", "UTF-16"},
                               {"\xfe\xff", "UTF-16"}};

}  // namespace

std::size_t sequence_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto tail = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    bool allowed = (lead != 0xe0 || byte(1) >= 0xa0) && (lead != 0xed || byte(1) <= 0x9f);
    return allowed && tail(1) && tail(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    bool allowed = (lead != 0xf0 || byte(1) >= 0x90) && (lead != 0xf4 || byte(1) <= 0x8f);
    return allowed && tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

std::size_t first_broken(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string wide_encoding(std::string_view text) {
  text = text.substr(0, kLooked);
  std::array<std::size_t, 4> zero{};  // by position within four bytes
  for (std::size_t i = 0; i < text.size(); ++i) zero[i % 4] += text[i] == '\0';
  const std::size_t all = zero[0] + zero[1] + zero[2] + zero[3], quarter = text.size() / 4;
  for (const Mark& mark : kWideMarks) {
    bool alone = text.size() <= 4;
    if (text.starts_with(mark.bytes) && (all > 0 || alone)) return mark.name;
  }
  if (text.size() < kFewest) return "";
  // Letters of most alphabets have a zero in their upper half, or three of four bytes.
  auto full = [&](std::size_t position) { return zero[position] * 5 > quarter * 4; };
  auto none = [&](std::size_t position) { return zero[position] * 5 < quarter; };
  if (full(1) && full(3) && none(0) && none(2)) return "UTF-16LE";
  if (full(0) && full(2) && none(1) && none(3)) return "UTF-16BE";
  if (full(1) && full(2) && full(3) && none(0)) return "UTF-32LE";
  if (full(0) && full(1) && full(2) && none(3)) return "UTF-32BE";
  return "";
}

std::string wide_hint(std::string_view text, std::string_view what) {
  std::string name = wide_encoding(text);
  if (name.empty()) return "";
  return "it looks like " + name.substr(0, 6) + ": iconv -f " + name + " -t UTF-8 makes " +
         std::string(what) + " of it";
}

bool take_mark(std::string_view* text) {
  bool marked = text->starts_with(kMark);
  if (marked) text->remove_prefix(kMark.size());
  return marked;
}

}  // namespace dshang::job
