#include "issue/secret_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "issue/name_rules.h"
#include "issue/scan.h"

namespace dshang::issue {
namespace {

using Words = std::vector<std::string>;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return is_upper(c) || is_lower(c); }

std::string small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

// "hftoken" -> "hf", "token".
void add_word(std::string word, Words* words) {
  for (const Glued& glued : glued_words()) {
    std::string_view ending = glued.ending;
    if (word.size() <= ending.size() || !word.ends_with(ending)) continue;
    std::string before = word.substr(0, word.size() - ending.size());
    if (*glued.behind && !among(before, glued.behind)) continue;
    words->push_back(before);
    words->push_back(std::string(ending));
    return;
  }
  words->push_back(std::move(word));
}

// "SharedAccessKey", "HF_TOKEN", "--api-key2" -> small letters, word by word, without the numbers that tell
// one from another.
Words words_of(std::string_view name) {
  Words words;
  std::string word;
  auto close = [&] {
    std::size_t letters = word.find_last_not_of("0123456789") + 1;
    if (letters > 1) word.resize(letters);
    if (letters > 0) add_word(std::move(word), &words);
    word.clear();
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    bool new_word = is_upper(c) && i > 0 && (is_lower(name[i - 1]) || is_digit(name[i - 1]));
    if (!std::isalnum(static_cast<unsigned char>(c)) || new_word) close();
    if (std::isalnum(static_cast<unsigned char>(c)))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  close();
  if (words.size() > 1 && words.back() == "value") words.pop_back();
  return words;
}

bool spelled(Spelling spelling, bool capitals, NameUse use) {
  switch (spelling) {
    case Spelling::kEvery:
      return true;
    case Spelling::kCapitals:
      return capitals;
    case Spelling::kOption:
      return use.option;
    case Spelling::kLoud:
      return capitals || use.option;
    case Spelling::kKey:
      return capitals || use.option || use.quoted;
  }
  return false;
}

bool fits_at(const NameRule& rule, const Words& words, std::size_t at) {
  if (!among(words[at], rule.words)) return false;
  std::string_view before = at > 0 ? std::string_view(words[at - 1]) : "", behind = rule.behind;
  if (!behind.empty() && (before.empty() || (behind != "*" && !among(before, behind)))) return false;
  return before.empty() || !among(before, rule.not_behind);
}

bool fits(const NameRule& rule, const Words& words) {
  std::size_t last = words.size() - 1;
  if (rule.place == Place::kOnly && last > 0) return false;
  if (rule.place != Place::kAnywhere) return fits_at(rule, words, last);
  for (std::size_t at = 0; at <= last; ++at) {
    if (fits_at(rule, words, at)) return true;
  }
  return false;
}

// $NAME, <your token>, {token}, %(token)s
bool refers(std::string_view value) {
  std::string_view rest = value.substr(1);
  bool word = !rest.empty() && (is_letter(rest[0]) || rest[0] == '_');
  switch (value[0]) {
    case '$':
      return word || rest.starts_with("{") || rest.starts_with("(");
    case '%':
      return (rest.size() < 2 && word) || rest.starts_with("(") || (word && rest.back() == '%');
    case '<':
      return rest.empty() || rest.back() == '>' || rest.find('>') == rest.npos;
    case '{':
      return rest.empty() || rest.back() == '}' || rest.find('}') == rest.npos;
  }
  return false;
}

// x: StorageKey
bool names_type(std::string_view value) {
  return is_upper(value[0]) && std::all_of(value.begin(), value.end(), is_letter);
}

}  // namespace

SecretName secret_name(std::string_view name, NameUse use) {
  if (name == "PWD" || name == "OLDPWD") return {};
  Words words = words_of(name);
  if (words.empty()) return {};
  bool capitals = std::none_of(name.begin(), name.end(), is_lower);
  for (const NameRule& rule : name_rules()) {
    if (spelled(rule.spelling, capitals, use) && fits(rule, words))
      return {rule.kind, rule.looks, capitals || use.option, use.quoted, words.size() == 1, rule.pair};
  }
  return {};
}

bool names_no_secret(std::string_view name) {
  Words words = words_of(name);
  if (words.empty()) return false;
  SecretName rule = secret_name(name);
  return among(words.back(), names_beside()) ? !*rule.kind : among(words.back(), names_about());
}

bool names_one(std::string_view value) { return *secret_name(value).kind && !looks_made(value); }

bool can_be_secret(const SecretName& name, std::string_view value, bool quoted) {
  constexpr std::size_t kShort = 8;
  if (says_nothing(value)) return false;
  bool called = value.find_first_of("([") != value.npos;
  if (!quoted && is_expression(value) && (!name.loud || called)) return false;
  bool number = value.find_first_not_of("0123456789.") == value.npos;
  if (name.looks != Looks::kAny && names_one(value)) return false;
  switch (name.looks) {
    case Looks::kAny:
      return true;
    case Looks::kKey:
      return name.loud || name.key || quoted || (value.size() >= kShort && !names_type(value));
    case Looks::kToken:
      if (number) return value.size() > kShort && (name.loud || name.key || !name.bare);
      if (name.loud) return true;
      if (value.find(' ') != value.npos) return false;
      if (name.bare) return quoted ? looks_made(value) : looks_random(value);
      return quoted || looks_made(value);
    case Looks::kMade:
      return looks_made(value);
    case Looks::kPair:
      return false;
  }
  return false;
}

bool says_nothing(std::string_view value) {
  constexpr const char* kWords =
      "none null true false auto str string int bool bytes yes no on off default undefined required unset any "
      "set empty hidden redacted missing invalid";
  std::string small = small_letters(value);
  if (small.size() < 2 || small == "not set" || among(small, kWords)) return true;
  if (small.starts_with("[redacted") || small.starts_with("optional[") || refers(value)) return true;
  return small.find_first_not_of("*x.-_") == std::string::npos;
}

bool is_expression(std::string_view value) {
  std::size_t at = 0;
  auto letter = [](char c) { return is_letter(c) || c == '_'; };
  if (value.empty() || !letter(value[0])) return false;
  while (at < value.size() && (letter(value[at]) || is_digit(value[at]))) ++at;
  if (at == value.size()) return false;
  if (value[at] == '(' || value[at] == '[') return true;
  return value[at] == '.' && at + 1 < value.size() && letter(value[at + 1]) && !looks_random(value);
}

bool looks_random(std::string_view value) {
  constexpr std::size_t kShortest = 16;
  auto digits = std::count_if(value.begin(), value.end(), is_digit);
  auto letters = std::count_if(value.begin(), value.end(), is_letter);
  return value.size() >= kShortest && digits >= 2 && letters >= 2;
}

bool looks_made(std::string_view value) {
  constexpr std::size_t kShortest = 8;
  bool path = value.find('/') != value.npos && (value[0] == '/' || value[0] == '.' || value[0] == '~');
  if (value.size() < kShortest || path || value.find_first_of(" \t\n()[]{}<>") != value.npos) return false;
  for (std::size_t from = 0; from < value.size();) {
    std::size_t end = std::min(value.find_first_of("-_./:,", from), value.size());
    std::string_view part = value.substr(from, end - from);
    bool letters = std::any_of(part.begin(), part.end(), is_letter);
    if (letters && std::any_of(part.begin(), part.end(), is_digit)) return true;
    from = end + 1;
  }
  return false;
}

}  // namespace dshang::issue
