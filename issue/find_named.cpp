// Secrets that are known by the name before them.
#include <algorithm>
#include <cctype>

#include "issue/find_secrets.h"
#include "issue/secret_names.h"

namespace dshang::issue {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::size_t kLongestName = 100;

bool in_name(char c) { return in_word(c) || c == '-' || c == '.'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_quote(char c) { return c == '"' || c == '\'' || c == '`'; }

bool in_capitals(std::string_view name) {
  return std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

struct Name {
  std::string_view text;
  std::size_t begin, end;
  bool option = false, quoted = false;
};

struct Value {
  std::size_t begin = 0, end = 0;
  bool quoted = false;
};

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// A quotation mark, which may stand behind backslashes: the text may be one inside another.
std::size_t behind_quote(std::string_view text, std::size_t at) {
  std::size_t mark = at;
  while (mark < text.size() && text[mark] == '\\') ++mark;
  return mark < text.size() && is_quote(text[mark]) ? mark + 1 : at;
}

std::size_t end_of_word(std::string_view text, std::size_t at) {
  while (at < text.size() && !std::isspace(static_cast<unsigned char>(text[at])) && !is_quote(text[at])) ++at;
  return at;
}

std::size_t end_of_quoted(std::string_view text, std::size_t from, char mark, bool escaped) {
  for (std::size_t at = from; at < text.size() && text[at] != '\n'; ++at) {
    if (text[at] == mark) return escaped && at > from && text[at - 1] == '\\' ? at - 1 : at;
    if (text[at] == '\\' && !escaped) ++at;
  }
  return std::min(text.find('\n', from), text.size());
}

// Up to a blank; a lower-case name's also up to what closes an argument or a part of an address.
std::size_t end_of_bare(std::string_view text, std::size_t from, const Name& name) {
  bool whole = (in_capitals(name.text) || name.option) &&
               !(name.begin > 0 && std::string_view("?&").find(text[name.begin - 1]) != kNone);
  std::string_view ends = whole ? "\"'`<>" : "\"'`<>,;&)]}|";
  std::size_t at = from;
  while (at < text.size() && !std::isspace(static_cast<unsigned char>(text[at])) &&
         ends.find(text[at]) == kNone)
    ++at;
  while (whole && at > from && std::string_view(",;)]}").find(text[at - 1]) != kNone) --at;
  return at;
}

Value value_at(std::string_view text, std::size_t from, const Name& name) {
  if (std::size_t behind = behind_quote(text, from); behind != from) {
    char mark = text[behind - 1];
    return {behind, end_of_quoted(text, behind, mark, behind - from > 1), true};
  }
  return {from, end_of_bare(text, from, name), false};
}

// "setenv NAME value", "aws configure set NAME value": the last word of the line.
std::size_t begin_of_set(std::string_view text, const Name& name, std::size_t from) {
  std::string_view before = text.substr(0, name.begin);
  bool sets = before.ends_with("set ") || before.ends_with("setenv ");
  std::size_t end = end_of_word(text, behind_quote(text, from));
  end = skip_blanks(text, behind_quote(text, end));
  bool last = end >= text.size() || text[end] == '\n' || text[end] == '\r';
  return sets && last && name.text.find('_') != kNone ? from : kNone;
}

// Where the value of a name begins: behind = or :, inside an element of that name, as the next word of a
// command or the next item of a list.  kNone: no value follows.
std::size_t begin_of_value(std::string_view text, const Name& name) {
  std::size_t at = name.end;
  if (name.quoted) at = behind_quote(text, at);
  if (at < text.size() && text[at] == ']' && name.quoted) ++at;  // environ["NAME"] = …
  std::size_t mark = skip_blanks(text, at);
  if (mark >= text.size()) return kNone;
  if (text[mark] == '=' && mark + 1 < text.size() && text[mark + 1] == '=') return kNone;
  if (text[mark] == '=' || text[mark] == ':') {
    bool arrow = mark + 1 < text.size() && text[mark + 1] == '>';
    return skip_blanks(text, mark + (arrow ? 2 : 1));
  }
  if (text[mark] == ',' && name.quoted) {
    std::size_t next = mark + 1;
    while (next < text.size() && std::isspace(static_cast<unsigned char>(text[next]))) ++next;
    return behind_quote(text, next) != next ? next : kNone;
  }
  if (text[mark] == '>' && name.begin > 0 && text[name.begin - 1] == '<') return mark + 1;
  if (name.option && mark > at && text[mark] != '-') return mark;
  return mark > at ? begin_of_set(text, name, mark) : kNone;
}

bool is_secret(const Name& name, const std::string& kind, std::string_view value, bool quoted) {
  constexpr std::size_t kShortToken = 8;
  if (says_nothing(value)) return false;
  bool digits = value.find_first_not_of("0123456789.") == kNone;
  bool certain = in_capitals(name.text) || name.option;
  if (kind == "token" && digits && value.size() <= kShortToken) return false;
  if (!quoted && !certain && is_expression(value)) return false;
  if (!quoted && is_expression(value) && value.find_first_of("([") != kNone) return false;
  // The word has other meanings: part of a text, part of a program.
  if (kind == "token" && !certain) {
    bool named = name.text.size() > 5;
    if (value.find(' ') != kNone || (!named && value.size() < kShortToken)) return false;
    if (!quoted && !looks_random(value)) return false;
  }
  if (kind == "key" && !certain && !quoted && !looks_random(value) && value.size() < kShortToken)
    return false;
  return true;
}

// A word that names much; with such a value it is Kaggle's or W&B's.
bool is_plain_key(std::string_view value) {
  bool hex = value.find_first_not_of("0123456789abcdef") == kNone;
  return (value.size() == 32 || value.size() == 40) && hex && looks_random(value);
}

void find_plain_key(std::string_view text, const Name& name, Secrets* found) {
  std::size_t from = name.text == "key" ? begin_of_value(text, name) : kNone;
  if (from == kNone || from >= text.size()) return;
  Value value = value_at(text, from, name);
  if (value.quoted && is_plain_key(text.substr(value.begin, value.end - value.begin)))
    found->push_back({value.begin, value.end, "key by its name"});
}

void find_at(std::string_view text, const Name& name, Secrets* found) {
  std::string kind = secret_name_kind(name.text);
  if (kind.empty() && name.quoted && (name.text == "auth" || name.text == "_auth")) kind = "password";
  bool user = name.begin >= 3 && text.substr(name.begin - 3, 3) == "://";  // find_urls() knows more
  if (kind.empty() || user) return;
  std::size_t from = begin_of_value(text, name);
  if (from == kNone || from >= text.size()) return;
  Value value = value_at(text, from, name);
  if (value.end <= value.begin) return;
  if (is_secret(name, kind, text.substr(value.begin, value.end - value.begin), value.quoted))
    found->push_back({value.begin, value.end, kind + " by its name"});
}

Name name_at(std::string_view text, std::size_t at) {
  Name name{{}, at, at, false, false};
  while (name.end < text.size() && in_name(text[name.end])) ++name.end;
  std::size_t dashes = at;
  while (dashes < name.end && text[dashes] == '-') ++dashes;
  name.option = dashes > at && dashes - at <= 2;
  name.quoted = at > 0 && is_quote(text[at - 1]);
  name.begin = dashes;
  name.text = text.substr(dashes, name.end - dashes);
  return name;
}

// .netrc: machine host login user password word
void find_netrc(std::string_view text, const Name& name, Secrets* found) {
  if (name.text != "password") return;
  std::size_t line = text.rfind('\n', name.begin);
  line = line == kNone ? 0 : line + 1;
  std::string_view before = text.substr(line, name.begin - line);
  bool first = before.find_first_not_of(" \t") == kNone;
  if (before.find("login ") == kNone && before.find("machine ") == kNone && !first) return;
  std::size_t from = skip_blanks(text, name.end), end = from;
  while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end]))) ++end;
  std::size_t rest = skip_blanks(text, end);
  bool last = rest >= text.size() || text[rest] == '\n' || text[rest] == '\r';
  if (from > name.end && end > from && last && text[from] != '=' && text[from] != ':')
    found->push_back({from, end, "password by its name"});
}

struct Command {
  const char* words;  // before the secret, which is the next word
  bool has_colon;     // user:password
};
constexpr Command kCommands[] = {
    {"sshpass -p ", false},           {"wandb login ", false},   {"wandb login --relogin ", false},
    {"comet login ", false},          {"hf auth login ", false}, {"vault login ", false},
    {"openssl -passin pass:", false}, {"-passin pass:", false},  {"-passout pass:", false},
};
constexpr const char* kUserOptions[] = {"-u ", "--user ", "--user=", "--proxy-user "};
constexpr const char* kUserPrograms[] = {"curl ", "wget ", "http "};

void find_user(std::string_view text, std::size_t at, Secrets* found) {
  for (std::string_view option : kUserOptions) {
    if (text.substr(at, option.size()) != option || (at > 0 && !is_blank(text[at - 1]))) continue;
    std::size_t line = text.rfind('\n', at);
    line = line == kNone ? 0 : line + 1;
    std::string_view before = text.substr(line, at - line);
    bool known = std::any_of(std::begin(kUserPrograms), std::end(kUserPrograms),
                             [&](std::string_view program) { return before.find(program) != kNone; });
    std::size_t from = skip_blanks(text, at + option.size());
    from = behind_quote(text, from);
    std::size_t end = end_of_word(text, from), colon = text.substr(from, end - from).find(':');
    if (known && colon != kNone && colon > 0 && from + colon + 1 < end)
      found->push_back({from + colon + 1, end, "password of a command"});
  }
}

// "docker login … -p word"; "mysql … -pword".
void find_password_option(std::string_view text, std::size_t at, Secrets* found) {
  if (text.substr(at, 2) != "-p" || at + 2 >= text.size() || at == 0 || !is_blank(text[at - 1])) return;
  std::size_t line = text.rfind('\n', at);
  std::string_view before = text.substr(line == kNone ? 0 : line + 1, at - (line == kNone ? 0 : line + 1));
  bool apart = is_blank(text[at + 2]);
  auto runs = [&](std::string_view program) { return before.find(program) != kNone; };
  bool known = apart ? runs("docker login ") || runs("podman login ")
                     : runs("mysql ") || runs("mysqldump ") || runs("mariadb ");
  std::size_t from = behind_quote(text, skip_blanks(text, at + 2)), end = end_of_word(text, from);
  if (known && end > from && !says_nothing(text.substr(from, end - from)))
    found->push_back({from, end, "password of a command"});
}

}  // namespace

void find_named(std::string_view text, Secrets* found) {
  for (std::size_t at = 0; at < text.size();) {
    if (!in_name(text[at])) {
      ++at;
      continue;
    }
    bool escape = in_word(text[at]) && at + 1 < text.size() && in_name(text[at + 1]);
    if (escape && begins_here(text, at + 1)) ++at;  // \npassword, written out
    Name name = name_at(text, at);
    if (!name.text.empty() && name.text.size() <= kLongestName) {
      find_at(text, name, found);
      find_plain_key(text, name, found);
      find_netrc(text, name, found);
    }
    at = name.end;
  }
}

void find_commands(std::string_view text, Secrets* found) {
  for (const Command& command : kCommands) {
    std::string_view words = command.words;
    for (std::size_t at = text.find(words); at != kNone; at = text.find(words, at + 1)) {
      std::size_t from = behind_quote(text, at + words.size()), end = end_of_word(text, from);
      std::string_view word = text.substr(from, end - from);
      if (word.size() > 3 && word[0] != '-' && !says_nothing(word))
        found->push_back({from, end, "password of a command"});
    }
  }
  for (std::size_t at = text.find('-'); at != kNone; at = text.find('-', at + 1)) {
    find_user(text, at, found);
    find_password_option(text, at, found);
  }
}

}  // namespace dshang::issue
