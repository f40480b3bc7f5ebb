#include "core/job/text_site.h"

#include <algorithm>

#include "core/job/printable.h"
#include "core/job/text_line.h"

namespace dshang::job {
namespace {

bool is_plain(char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f && c != '%' && c != '|'; }

std::string encoded(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  bool all = text == "?";  // stands for the unknown file
  std::string out;
  for (char c : text) {
    if (is_plain(c) && !all) {
      out += c;
    } else {
      unsigned char byte = static_cast<unsigned char>(c);
      out += {'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return out;
}

std::string decoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    std::size_t high = i + 1 < text.size() ? kDigits.find(text[i + 1]) : kDigits.npos;
    std::size_t low = i + 2 < text.size() ? kDigits.find(text[i + 2]) : kDigits.npos;
    if (high == kDigits.npos || low == kDigits.npos) throw TextError("% stands before two digits 0-9, a-f");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return printable(out);
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

FrameName frame_of(std::string_view text, Names& names) {
  std::size_t space = std::min(text.find(' '), text.size());
  std::string_view place = text.substr(0, space);
  std::size_t colon = place.rfind(':');
  if (colon == place.npos || colon == 0) {
    throw TextError("\"" + std::string(text.substr(0, 60)) + "\" is no frame: a frame is file:line function");
  }
  std::int64_t line = to_signed(place.substr(colon + 1));
  if (line < INT32_MIN || line > INT32_MAX) throw TextError("a line number is from -2^31 to 2^31-1");
  std::string_view file = place.substr(0, colon);
  FrameName frame;
  if (file != "?") frame.file = names.name(decoded(file));
  frame.function = names.name(decoded(trimmed(text.substr(space))));
  frame.line = static_cast<std::int32_t>(line);
  return frame;
}

}  // namespace

std::string frames_text(const std::vector<FrameName>& frames, const Names& names) {
  std::string out;
  for (const FrameName& frame : frames) {
    if (!out.empty()) out += " | ";
    out += frame.file ? encoded(names.text(frame.file)) : "?";
    out += ':' + std::to_string(frame.line);
    if (frame.function) out += ' ' + encoded(names.text(frame.function));
  }
  return out;
}

std::vector<FrameName> frames_of(std::string_view text, Names& names) {
  std::vector<FrameName> frames;
  while (true) {
    std::size_t bar = std::min(text.find('|'), text.size());
    frames.push_back(frame_of(trimmed(text.substr(0, bar)), names));
    if (bar == text.size()) return frames;
    text.remove_prefix(bar + 1);
  }
}

}  // namespace dshang::job
