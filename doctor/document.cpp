#include "doctor/document.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/job/encoding.h"

namespace dshang::doctor {
namespace {

constexpr int kDeepest = 400;  // nested objects and lists; hjson itself ends at some more
constexpr std::string_view kMarks = "{}[],:";
constexpr const char* kTooDeep = "nested too deep";

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string place_of(std::string_view text, std::size_t at) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i < at && i < text.size(); ++i) {
    ++column;
    if (text[i] == '\n') ++line, column = 1;
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

bool infinite(std::string_view word) {
  double value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc::result_out_of_range || end != word.data() + word.size()) return false;
  return word.find("e-") == std::string_view::npos && word.find("E-") == std::string_view::npos;
}

// HJSON as https://hjson.github.io/syntax.html has it.
class Reader {
 public:
  Reader(std::string_view text, Document* document) : text_(text), document_(document) {}

  Json read() {
    skip();
    bool braces = peek() == '{' || peek() == '[';
    Json value = braces ? this->value("") : members("", '\0');
    skip();
    if (!ended()) fail("something follows the closing brace");
    return value;
  }

 private:
  std::string_view text_;
  Document* document_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string swallowed_;  // the first text without quotes that took marks of JSON with it, and its place

  bool ended() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  std::string place(std::size_t at) const { return place_of(text_, at); }

  [[noreturn]] void fail(const std::string& what) const {
    if (!swallowed_.empty()) throw std::runtime_error(swallowed_);
    throw std::runtime_error(place(at_) + ": " + what);
  }

  // Here the text is HJSON and no JSON; the first such place is told.
  void departs(std::size_t at, const std::string& what) {
    if (document_->not_strict_why.empty()) document_->not_strict_why = place(at) + ": " + what;
  }

  bool comment() const { return peek() == '#' || (peek() == '/' && (peek(1) == '/' || peek(1) == '*')); }

  void skip_comment() {
    departs(at_, "a comment");
    bool block = peek() == '/' && peek(1) == '*';
    std::size_t end = text_.find(block ? "*/" : "\n", at_);
    if (end == std::string_view::npos) {
      if (block) fail("a comment is not closed");
      at_ = text_.size();
    } else {
      at_ = end + (block ? 2 : 1);
    }
  }

  void skip() {
    while (!ended()) {
      if (std::isspace(static_cast<unsigned char>(peek()))) {
        ++at_;
      } else if (comment()) {
        skip_comment();
      } else {
        return;
      }
    }
  }

  Json value(const std::string& path) {
    if (++depth_ > kDeepest) fail(kTooDeep);
    Json result;
    char c = peek();
    if (c == '{') {
      ++at_;
      result = members(path, '}');
    } else if (c == '[') {
      ++at_;
      result = items(path);
    } else if (c == '"' || c == '\'') {
      result = quoted();
    } else {
      result = bare();
    }
    --depth_;
    return result;
  }

  // Between two values of an object or list, behind the first; `comma` is where the last comma stands.
  void separate(char closing) {
    skip();
    std::size_t comma = at_;
    bool there = peek() == ',';
    if (there) ++at_;
    skip();
    if (there && peek() == closing) departs(comma, std::string("a comma before ") + closing);
    if (!there && !ended() && peek() != closing) departs(comma, "a comma is missing before this");
  }

  Json members(const std::string& path, char closing) {
    Json object = Json::object();
    if (!closing) departs(at_, "braces are missing");
    for (;;) {
      skip();
      if (ended() && closing == '\0') return object;
      if (ended()) fail("an object is not closed by }");
      if (closing && peek() == closing) {
        ++at_;
        return object;
      }
      std::string key = this->key();
      skip();
      if (peek() != ':') fail("':' is missing after the key " + key);
      ++at_;
      skip();
      std::string inner = path.empty() ? key : path + "." + key;
      if (object.contains(key)) document_->duplicates.push_back(inner);
      object[key] = value(inner);
      separate(closing);
    }
  }

  Json items(const std::string& path) {
    Json list = Json::array();
    for (;;) {
      skip();
      if (ended()) fail("a list is not closed by ]");
      if (peek() == ']') {
        ++at_;
        return list;
      }
      list.push_back(value(path + "[" + std::to_string(list.size()) + "]"));
      separate(']');
    }
  }

  std::string key() {
    if (peek() == '"' || peek() == '\'') return quoted();
    std::size_t start = at_;
    while (!ended() && !std::isspace(static_cast<unsigned char>(peek())) &&
           kMarks.find(peek()) == std::string_view::npos)
      ++at_;
    if (at_ == start) fail("a key is missing");
    departs(start, "a key without quotes");
    return std::string(text_.substr(start, at_ - start));
  }

  std::string quoted() {
    char mark = text_[at_];
    if (mark == '\'') departs(at_, "a text in single quotes");
    if (text_.substr(at_, 3) == "'''") return several_lines();
    std::string result;
    for (++at_; !ended() && peek() != mark; ++at_) {
      if (peek() == '\n') fail("a text is not closed before the line ends");
      if (peek() == '\\') {
        escaped(&result);
      } else {
        result += peek();
      }
    }
    if (ended()) fail("a text is not closed");
    ++at_;
    return result;
  }

  std::string several_lines() {
    std::size_t end = text_.find("'''", at_ + 3);
    if (end == std::string_view::npos) fail("a text is not closed by '''");
    std::string result(text_.substr(at_ + 3, end - at_ - 3));
    at_ = end + 3;
    return result;
  }

  // The rest of the library knows what \u means: one letter is given to it.
  void escaped(std::string* result) {
    std::size_t length = peek(1) == 'u' ? 6 : 2;
    bool pair = length == 6 && (peek(2) == 'd' || peek(2) == 'D') && peek(6) == '\\' && peek(7) == 'u';
    if (pair) length = 12;
    std::string letter = "\"" + std::string(text_.substr(at_, length)) + "\"";
    if (peek(1) == '\'') letter = "\"'\"";
    Json read = Json::parse(letter, nullptr, false);
    if (!read.is_string()) fail("an unknown escape");
    *result += read.get<std::string>();
    at_ += length - 1;
  }

  static bool constant(std::string_view word, Json* value) {
    *value = Json::parse(word, nullptr, false);
    return !value->is_discarded() && (value->is_number() || value->is_boolean() || value->is_null());
  }

  // Of a text without quotes: what JSON has for its first word.
  static std::string why_bare(std::string_view word) {
    for (auto [python, json] : {std::pair("True", "true"), {"False", "false"}, {"None", "null"}}) {
      std::string_view rest = word.substr(std::min(word.size(), std::strlen(python)));
      bool whole = rest.empty() || kMarks.find(rest[0]) != std::string_view::npos || blank(rest[0]);
      if (word.starts_with(python) && whole) return std::string(python) + " is Python's word; write " + json;
    }
    Json value;
    std::string_view first = word.substr(0, word.find(' '));
    if (first.size() < word.size() && constant(first, &value))
      return "a comma is missing after " + std::string(first);
    return "a text without quotes";
  }

  void note_bare(std::size_t start, std::string_view word) {
    std::string why = why_bare(word);
    departs(start, why);
    auto count = [&](char mark) { return std::count(word.begin(), word.end(), mark); };
    bool marks = count('}') > count('{') || count(']') > count('[');
    if (marks && swallowed_.empty())
      swallowed_ = place(start) + ": " + why + " (HJSON takes the rest of the line for a text)";
  }

  // A number, true, false, null; anything else is a text up to the end of its line.
  Json bare() {
    std::size_t start = at_;
    if (kMarks.find(peek()) != std::string_view::npos)
      fail(std::string("a value is missing before ") + peek());
    for (;; ++at_) {
      bool line_ends = ended() || peek() == '\n';
      if (!line_ends && peek() != ',' && peek() != '}' && peek() != ']' && !comment()) continue;
      std::string_view word = text_.substr(start, at_ - start);
      while (!word.empty() && blank(word.back())) word.remove_suffix(1);
      Json value;
      if (constant(word, &value)) return value;
      if (infinite(word)) {
        if (document_->too_large.empty())
          document_->too_large =
              place(start) + ": the number " + std::string(word.substr(0, 40)) + " is too large";
        return word.starts_with('-') ? -std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::infinity();
      }
      if (line_ends && word.empty()) fail("a value is missing");
      if (!line_ends) continue;
      note_bare(start, word);
      return std::string(word);
    }
  }
};

// "line 2, column 3" of nlohmann's own message, and what stands behind it.
std::string place_in(const std::string& message) {
  std::size_t from = message.find("line "), to = message.find(':', from);
  return from == std::string::npos ? "" : message.substr(from, to - from);
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while …; last read: 'x'"
std::string what_of(const Json::exception& error) {
  std::string text = error.what();
  std::size_t place = text.find(" at line "), code = text.find("] ");
  std::size_t from = place != std::string::npos ? text.find(": ", place) : code;
  if (from != std::string::npos) text = text.substr(from + 2);
  return text.substr(0, text.find("; last read"));
}

std::string broken_at(std::string_view text, std::size_t at) {
  char byte[8];
  std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[at])));
  return place_of(text, at) + ": the byte " + byte + " is no UTF-8";
}

// Why Python cannot decode the file; "" it can.
std::string no_utf8(std::string_view text) {
  std::string wide = job::wide_hint(text, "a config");
  std::size_t broken = job::first_broken(text);
  if (!wide.empty() || broken == std::string_view::npos) return wide;
  return broken_at(text, broken) + ", and Python stops there; save the file as UTF-8";
}

// Python's json writes and reads numbers that JSON has no word for (time_step_limit of a Mamba model): null here.
std::string without_infinity(std::string_view text) {
  std::string result(text);
  bool quoted = false;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (quoted && result[i] == '\\') {
      ++i;
      continue;
    }
    if (result[i] == '"') quoted = !quoted;
    if (quoted) continue;
    for (const char* word : {"-Infinity", "Infinity", "NaN"}) {
      const std::size_t length = std::strlen(word);
      if (result.compare(i, length, word) == 0) result.replace(i, length, "null");
    }
  }
  return result;
}

// As JSON has it: parsing is safe at any depth, but copying and printing are not.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[') && ++depth > kDeepest) {
      return true;
    } else if (!quoted && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return false;
}

std::string python_words(std::string_view text) {
  bool python = text.find('\'') != std::string_view::npos &&
                (text.find("True") != std::string_view::npos ||
                 text.find("False") != std::string_view::npos || text.find("None") != std::string_view::npos);
  return python ? "; it looks like a printed Python dict: write it with json.dump" : "";
}

}  // namespace

Document read_document(std::string_view text) {
  Document document;
  document.error = no_utf8(text);
  if (!document.error.empty()) return document;
  const bool marked = job::take_mark(&text);
  try {
    document.value = Reader(text, &document).read();
  } catch (const std::runtime_error& error) {
    document.error = error.what() + python_words(text);
    return document;  // what is nested too deep is not to be parsed
  }
  try {
    Json strict = Json::parse(text);
  } catch (const Json::parse_error& error) {
    document.not_strict = document.not_strict_why.empty() ? place_in(error.what()) : document.not_strict_why;
    if (document.not_strict.empty()) document.not_strict = "somewhere";
  } catch (const Json::out_of_range&) {  // a number that is infinite, which Python reads
    document.not_strict = document.not_strict_why;
  }
  if (marked) document.not_strict = "line 1, column 1: a byte order mark";
  return document;
}

Json read_object(std::string_view text, const std::string& origin) {
  auto fail = [&](const std::string& why) { throw std::runtime_error(origin + why); };
  job::take_mark(&text);
  if (too_deep(text)) fail(std::string(" is ") + kTooDeep);
  Json value;
  try {
    value = Json::parse(without_infinity(text));
  } catch (const Json::exception& error) {
    std::size_t broken = job::first_broken(text);
    std::string place = place_in(error.what());
    if (broken != std::string_view::npos) fail(" is no JSON: " + broken_at(text, broken));
    fail(" is no JSON: " + (place.empty() ? "" : place + ": ") + what_of(error));
  }
  if (!value.is_object()) fail(" is no JSON object");
  return value;
}

}  // namespace dshang::doctor
