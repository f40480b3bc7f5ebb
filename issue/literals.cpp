#include "issue/literals.h"

#include <algorithm>
#include <string>

#include "issue/find_secrets.h"

namespace dshang::issue {
namespace {

constexpr std::size_t kLongestList = 1 << 14;  // bytes
constexpr int kDeepestList = 20;
constexpr std::string_view kOpen = "([{", kClose = ")]}";

bool holds(std::string_view letters, char c) { return letters.find(c) != kNone; }

// A string of one line whose marks are `mark`: \" ends where the same stands again.
Literal one_line(std::string_view text, std::size_t from, std::string_view mark) {
  bool escaped = mark.size() > 1;
  std::size_t at = from;
  for (; !ends_line(text, at) && text[at] != mark.back(); ++at) {
    if (text[at] == '\\' && !escaped) ++at;
  }
  at = std::min(at, text.size());
  std::size_t end = escaped && at > from && text[at - 1] == '\\' ? at - 1 : at;
  return {from, end, true, {}, false, ends_line(text, at) ? at : at + 1};
}

// r, f, b, u, rb, … of Python.
std::size_t skip_prefix(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && end - at < 2 && holds("rRfFbBuU", text[end])) ++end;
  return end > at && end < text.size() && (text[end] == '"' || text[end] == '\'') ? end : at;
}

std::size_t end_of_bare(std::string_view text, std::size_t from, const Writing& writing) {
  bool whole = writing.whole && !writing.address;
  std::string_view ends = whole ? "\"'`<>" : "\"'`<>,;&)]}|";
  std::size_t at = from;
  text = text.substr(0, from + kLongestWord);
  while (at < text.size() && !is_space(text[at]) && !holds(ends, text[at])) ++at;
  while (whole && at > from && holds(",;)]}", text[at - 1])) --at;
  return at;
}

// [ "a", 'b' ], {"k": "a", k: b}, ("a"), over several lines.
class List {
 public:
  List(std::string_view text, std::size_t at) : text_(text), at_(at), parens_(text[at] == '(') {}

  Literals read() {
    const std::size_t limit = std::min(text_.size(), at_ + kLongestList);
    while (at_ < limit && depth_ <= kDeepestList && step()) {
    }
    if (parens_ && depth_ > 0) found_.clear();
    return found_;
  }

 private:
  bool step() {
    char c = text_[at_];
    if (Literal one = string_at(text_, at_); one.behind) {
      add(one);
    } else if (holds(kOpen, c)) {
      ++depth_, ++at_;
    } else if (holds(kClose, c)) {
      ++at_;
      return --depth_ > 0;
    } else if (is_space(c) || holds(",:;", c)) {
      ++at_;
    } else {
      add_bare();
    }
    return true;
  }

  // A key where a colon follows, else a value.
  void add(Literal one) {
    at_ = one.behind;
    std::size_t next = skip_spaces(text_, at_);
    if (!parens_ && next < text_.size() && text_[next] == ':') {
      key_ = text_.substr(one.begin, one.end - one.begin);
      at_ = next + 1;
    } else if (!parens_ || depth_ == 1) {
      one.key = key_, one.item = true;
      found_.push_back(one);
    }
  }

  void add_bare() {
    std::size_t begin = at_;
    auto ends = [](char c) {
      return is_space(c) || is_quote(c) || holds(",:;", c) || holds(kOpen, c) || holds(kClose, c);
    };
    while (at_ < text_.size() && !ends(text_[at_])) ++at_;
    if (at_ == begin) ++at_;
    bool call = at_ < text_.size() && (text_[at_] == '(' || text_[at_] == '[');
    if (call) at_ = behind_brackets();
    if (!call && !parens_) add({begin, at_, false, {}, true, at_});
  }

  // The arguments of a call are its own.
  std::size_t behind_brackets() const {
    std::size_t at = at_, limit = std::min(text_.size(), at_ + kLongestList);
    for (int depth = 0; at < limit && depth <= kDeepestList; ++at) {
      if (Literal one = string_at(text_, at); one.behind) at = one.behind - 1;
      else if (holds(kOpen, text_[at])) ++depth;
      else if (holds(kClose, text_[at]) && --depth <= 0) return at + 1;
    }
    return at;
  }

  std::string_view text_, key_;
  std::size_t at_;
  bool parens_;
  int depth_ = 0;
  Literals found_;
};

bool opens_list(std::string_view text, std::size_t from, const Writing& writing) {
  if (from >= text.size() || !holds(kOpen, text[from])) return false;
  if (!writing.whole) return true;
  std::size_t next = skip_spaces(text, from + 1);  // else a word that begins with a bracket
  return next < text.size() && (string_at(text, next).behind || holds("[{", text[next]));
}

// "|" or ">" of YAML, with nothing behind it but how to treat ends of lines.
bool opens_block(std::string_view text, std::size_t from) {
  if (from >= text.size() || (text[from] != '|' && text[from] != '>')) return false;
  while (++from < text.size() && holds("+-123456789", text[from])) {
  }
  from = skip_blanks(text, from);
  return ends_line(text, from) || text[from] == '#';
}

std::size_t indent_of(std::string_view text, std::size_t line) { return skip_blanks(text, line) - line; }

std::size_t without_blanks(std::string_view text, std::size_t begin, std::size_t end) {
  while (end > begin && is_space(text[end - 1])) --end;
  return end;
}

// The lines below a key of YAML that belong to it.
class Below {
 public:
  Below(std::string_view text, std::size_t name, bool block) : text_(text), block_(block) {
    std::size_t line = begin_of_line(text, name);
    indent_ = indent_of(text, line);
    std::size_t first = line + indent_;
    for (; text.substr(first, 2) == "- "; first = skip_blanks(text, first + 1)) indent_ = first + 2 - line;
    if (first < text.size() && is_quote(text[first])) ++first;
    alone_ = first == name;  // else something stands before the name: a statement, a sentence
    at_ = end_of_line(text, name);
  }

  Literals read() {
    const std::size_t limit = at_ + kLongestList;
    auto another = [&] { return at_ < text_.size() && at_ < limit && text_[at_] == '\n'; };
    while (alone_ && another() && line(at_ + 1)) at_ = end_of_line(text_, at_ + 1);
    return found_;
  }

 private:
  bool line(std::size_t begin) {
    std::size_t end = end_of_line(text_, begin), indent = indent_of(text_, begin);
    std::size_t first = begin + indent;
    if (ends_line(text_, first)) return true;
    bool item = text_.substr(first, 2) == "- ";
    if (indent < indent_ || (indent == indent_ && !(item && !block_))) return false;
    if (block_) {
      found_.push_back({first, without_blanks(text_, first, end), true, {}, false, end});
    } else if (text_[first] != '#') {
      while (text_.substr(first, 2) == "- ") first = skip_blanks(text_, first + 1);
      entry(first, end, item);
    }
    return true;
  }

  // "key: value", "value"
  void entry(std::size_t first, std::size_t end, bool item) {
    if (std::size_t colon = colon_of_key(first, end); colon < end) {
      key_ = text_.substr(first, colon - first);
      first = skip_blanks(text_, colon + 1);
      item = true;
    }
    if (ends_line(text_, first) || opens_block(text_, first)) return;
    if (holds("[{", text_[first])) {
      for (Literal one : List(text_, first).read()) found_.push_back(one);
      return;
    }
    Literal one = string_at(text_, first);
    if (!one.behind) {
      if (!item) return;
      std::size_t comment = text_.substr(0, end).find(" #", first);
      one = {first, without_blanks(text_, first, std::min(comment, end)), false, {}, true, end};
    }
    one.key = key_, one.item = true;
    found_.push_back(one);
  }

  std::size_t colon_of_key(std::size_t first, std::size_t end) const {
    if (Literal key = string_at(text_, first); key.behind) {
      std::size_t next = skip_blanks(text_, key.behind);
      return next < end && text_[next] == ':' ? next : end;
    }
    while (first < end && !(text_[first] == ':' && (first + 1 == end || is_space(text_[first + 1])))) ++first;
    return first;
  }

  std::string_view text_, key_;
  bool block_, alone_ = false;
  std::size_t indent_ = 0, at_ = 0;
  Literals found_;
};

// What is taken where the first has no value: x or "…", x if y else "…".
void add_others(std::string_view text, std::size_t from, Literals* found) {
  constexpr std::size_t kFar = 300;
  std::string_view rest = text.substr(0, from + kFar);
  rest = rest.substr(0, end_of_line(rest, from));
  int depth = 0;
  for (std::size_t at = from; at < rest.size(); ++at) {
    if (Literal one = string_at(rest, at); one.behind) at = one.behind - 1;
    depth += holds(kOpen, rest[at]) ? 1 : holds(kClose, rest[at]) ? -1 : 0;
    if (depth < 0 || (depth == 0 && holds(",;", rest[at]))) return;
    for (std::string_view word : {" or ", " else ", "|| ", "?? ", "?: "}) {
      if (rest.substr(at, word.size()) != word) continue;
      Literal one = string_at(rest, skip_blanks(rest, at + word.size()));
      if (one.behind) found->push_back(one);
    }
  }
}

// ${NAME:-…}: that part of it.
bool narrow_to_default(std::string_view text, Literal* one) {
  std::string_view value = text.substr(one->begin, one->end - one->begin);
  if (!value.starts_with("${")) return false;
  std::size_t mark = 2;
  while (mark < value.size() && in_word(value[mark])) ++mark;
  if (mark < value.size() && value[mark] == ':') ++mark;
  if (mark >= value.size() || !holds("-=", value[mark])) return false;
  std::size_t begin = one->begin + mark + 1, end = text.find_first_of("}\n", begin);
  if (Literal inner = string_at(text, begin); inner.behind) begin = inner.begin, end = inner.end;
  one->begin = begin, one->end = std::min(end, text.size());
  return true;
}

Literals word_at(std::string_view text, std::size_t from, const Writing& writing) {
  Literal one = string_at(text, from);
  if (!one.behind) {
    std::size_t end = end_of_bare(text, from, writing);
    one = {from, end, false, {}, false, from};
  }
  narrow_to_default(text, &one);
  Literals found = {one};
  if (!writing.address) add_others(text, one.behind, &found);
  if (found.size() > 1 && !one.quoted) found.erase(found.begin());  // a variable, or a call
  return found;
}

}  // namespace

Literal string_at(std::string_view text, std::size_t from) {
  bool in_a_word = from > 0 && from < text.size() && in_word(text[from]) && in_word(text[from - 1]);
  std::size_t open = in_a_word ? from : skip_prefix(text, from), begin = behind_quote(text, open);
  if (begin == open) return {};
  std::string_view mark = text.substr(open, begin - open);
  if (text.substr(begin, mark.size()) != mark || text.substr(begin + mark.size(), mark.size()) != mark)
    return one_line(text, begin, mark);
  const std::string three = std::string(mark).append(mark).append(mark);
  begin += 2 * mark.size();
  std::size_t end = std::min(text.find(three, begin), text.size());
  return {begin, end, true, {}, false, std::min(end + three.size(), text.size())};
}

Literals values_at(std::string_view text, std::size_t from, const Writing& writing) {
  if (ends_line(text, from)) {
    if (!writing.colon) return {};
    Literal one = writing.key ? string_at(text, skip_spaces(text, from)) : Literal{};
    std::size_t next = skip_blanks(text, one.behind);
    if (one.behind && (next >= text.size() || text[next] != ':')) return {one};
    return Below(text, writing.name, false).read();
  }
  if (writing.colon && opens_block(text, from)) return Below(text, writing.name, true).read();
  if (opens_list(text, from, writing)) {
    Literals items = List(text, from).read();
    if (!items.empty()) return items;
  }
  return word_at(text, from, writing);
}

}  // namespace dshang::issue
