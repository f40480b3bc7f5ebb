// Names and values that stand beside each other: {"name": "DB_PASSWORD", "value": "…"}, <name>…</name><value>…
#include <algorithm>

#include "issue/find_secrets.h"
#include "issue/literals.h"
#include "issue/secret_names.h"

namespace dshang::issue {
namespace {

constexpr std::string_view kNameKeys[] = {"name", "Name", "key", "Key", "variable", "env", "NAME"};
constexpr std::string_view kValueKeys[] = {"value",        "Value",       "val",  "default",
                                           "defaultValue", "stringValue", "VALUE"};
constexpr std::size_t kFar = 600;  // bytes

// Where the value of a key begins, if a key of this name stands at `at`.
std::size_t behind_key(std::string_view text, std::size_t at, std::string_view key) {
  if (text.substr(at, key.size()) != key || (at > 0 && in_word(text[at - 1]))) return kNone;
  std::size_t end = at + key.size();
  if (end < text.size() && in_word(text[end])) return kNone;
  if (end < text.size() && text[end] == '>' && at > 0 && text[at - 1] == '<') return end + 1;
  std::size_t mark = skip_blanks(text, behind_quote(text, end));
  bool joined = mark < text.size() && (text[mark] == ':' || text[mark] == '=');
  return joined ? skip_blanks(text, mark + 1) : kNone;
}

bool begins_item(std::string_view text, std::size_t line) {
  return text.substr(skip_blanks(text, line), 2) == "- ";
}

// Where the object ends in which `at` stands: at a bracket, an empty line, the next item of a list.
std::size_t end_of_object(std::string_view text, std::size_t at) {
  const std::size_t limit = std::min(text.size(), at + kFar);
  for (; at < limit; ++at) {
    if (Literal one = string_at(text, at); one.behind > at + 1) {
      at = one.behind - 1;
    } else if (text[at] == '}' || text[at] == ']' || text[at] == '{' || text.substr(at, 3) == "</p") {
      return at;
    } else if (text[at] == '\n' && (ends_line(text, at + 1) || begins_item(text, at + 1))) {
      return at;
    }
  }
  return at;
}

std::size_t begin_of_object(std::string_view text, std::size_t at) {
  const std::size_t limit = at - std::min(at, kFar);
  for (; at > limit; --at) {
    char c = text[at - 1];
    if (c == '{' || c == '}' || c == '[') return at;
    if (c == '\n' && (ends_line(text, at) || begins_item(text, at))) return at;
  }
  return at;
}

// The values of the keys of values from `begin` on.
void add_values(std::string_view text, std::size_t begin, const SecretName& rule, Secrets* found) {
  for (std::string_view key : kValueKeys) {
    for (std::size_t at = text.find(key, begin); at != kNone; at = text.find(key, at + 1)) {
      std::size_t from = behind_key(text, at, key);
      if (from == kNone || from >= text.size()) continue;
      Writing writing;
      writing.whole = writing.colon = writing.key = true;
      writing.name = at;
      for (const Literal& one : values_at(text, from, writing)) {
        if (one.end > one.begin && can_be_secret(rule, text.substr(one.begin, one.end - one.begin), true))
          found->push_back({one.begin, one.end, std::string(rule.kind) + " by its name"});
      }
    }
  }
}

}  // namespace

void find_pairs(std::string_view text, Secrets* found) {
  for (std::string_view key : kNameKeys) {
    for (std::size_t at = text.find(key); at != kNone; at = text.find(key, at + 1)) {
      std::size_t from = behind_key(text, at, key);
      if (from == kNone) continue;
      Literal name = string_at(text, from);
      if (!name.behind) {
        name.begin = from;
        name.end = std::min(text.find_first_of(" \t\r\n,<}", from), text.size());
      }
      SecretName rule = secret_name(text.substr(name.begin, name.end - name.begin), {.quoted = true});
      if (!*rule.kind || name.end - name.begin > kFar) continue;
      std::size_t end = end_of_object(text, std::max(name.end, name.behind));
      std::string_view object = text.substr(0, end);
      add_values(object, begin_of_object(text, at), rule, found);
    }
  }
}

}  // namespace dshang::issue
