// Secrets that are known by the name before them.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "issue/call_forms.h"
#include "issue/find_secrets.h"
#include "issue/literals.h"
#include "issue/scan.h"
#include "issue/secret_names.h"

namespace dshang::issue {
namespace {

constexpr std::size_t kLongestName = 100;
constexpr std::string_view kGiven = "pass:";  // openssl: the password itself, not where it stands

bool in_name(char c) { return in_word(c) || c == '-' || c == '.'; }

struct Name {
  std::string_view text;
  std::size_t begin, end;
  NameUse use;
};

// How a value is joined to its name, and where it begins.
struct Lead {
  enum How { kNothing, kAssigned, kMapped, kCompared, kItem, kWord, kElement } how = kNothing;
  std::size_t from = 0;
};

// "setenv NAME value", "set -x NAME value", "ENV NAME value", "aws configure set NAME value": the last word
// of the line.
bool is_set(std::string_view text, const Name& name, std::size_t from) {
  std::string_view before = before_in_line(text, name.begin, 80);
  auto drop_blanks = [&] { before = before.substr(0, before.find_last_not_of(" \t") + 1); };
  auto word = [&] { return before.substr(before.find_last_of(" \t;&") + 1); };
  bool flags = false;
  for (drop_blanks(); word().starts_with('-'); drop_blanks(), flags = true)
    before = before.substr(0, before.size() - word().size());
  bool sets = among(word(), "set setenv SetEnv setx ENV");
  std::size_t end = end_of_word(text, behind_quote(text, from));
  end = skip_blanks(text, behind_quote(text, end));
  return sets && ends_line(text, end) && (flags || name.text.find('_') != kNone);
}

// Behind a colon: "str =", "Optional[str] =".  Where the value begins, kNone where this is no type.
std::size_t behind_annotation(std::string_view text, std::size_t at) {
  constexpr const char* kTypes =
      "str bytes Optional Union Final SecretStr Any list List dict Dict tuple Tuple Sequence string int ClassVar "
      "Annotated typing";
  constexpr std::size_t kFar = 100;
  if (at < text.size() && is_quote(text[at])) ++at;
  std::size_t end = at;
  while (end < text.size() && in_word(text[end])) ++end;
  if (!among(text.substr(at, end - at), kTypes)) return kNone;
  int depth = 0;
  for (; end < text.size() && end - at < kFar; ++end) {
    char c = text[end];
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == '=') return text.substr(end, 2) != "==" ? skip_blanks(text, end + 1) : kNone;
    bool of_type = in_word(c) || is_blank(c) || is_quote(c) || std::string_view("[]|.").find(c) != kNone;
    if (!of_type && !(c == ',' && depth > 0)) return kNone;
  }
  return kNone;
}

// secrets["of this"] = …
std::size_t behind_subscript(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '[') return at;
  Literal key = string_at(text, at + 1);
  return key.behind && text.substr(key.behind, 1) == "]" ? key.behind + 1 : at;
}

Lead lead_of(std::string_view text, const Name& name) {
  std::size_t at = name.end;
  if (name.use.quoted) at = behind_quote(text, at);
  if (name.use.quoted && at < text.size() && text[at] == ']') ++at;  // environ["NAME"] = …
  if (!name.use.quoted) at = behind_subscript(text, at);
  std::size_t mark = skip_blanks(text, at);
  if (mark >= text.size()) return {};
  if (name.begin > 1 && text.substr(name.begin - 2, 2) == "${" && text[mark] == ':') {  // ${NAME:-value}
    bool given = mark + 1 < text.size() && (text[mark + 1] == '-' || text[mark + 1] == '=');
    return given ? Lead{Lead::kAssigned, mark + 2} : Lead{};
  }
  auto is = [&](std::string_view operation) { return text.substr(mark, operation.size()) == operation; };
  auto behind = [&](Lead::How how, std::size_t length) {
    return Lead{how, skip_blanks(text, mark + length)};
  };
  for (std::string_view compares : {"===", "!==", "==", "!="})
    if (is(compares)) return behind(Lead::kCompared, compares.size());
  for (std::string_view assigns : {":=", "+=", "?=", "=>", ":>", "="})
    if (is(assigns)) return behind(Lead::kAssigned, assigns.size());
  if (is(":")) {
    Lead mapped = behind(Lead::kMapped, 1);
    std::size_t from = behind_annotation(text, mapped.from);
    return from == kNone ? mapped : Lead{Lead::kAssigned, from};
  }
  bool path = !name.use.option && name.text.find('.') != kNone;  // in a list of names: "torch.x.y"
  if (is(",") && name.use.quoted && !path && text[mark - 1] != '`')
    return {Lead::kItem, skip_spaces(text, mark + 1)};
  bool element = name.begin > 0 && text[name.begin - 1] == '<';
  bool closed = element && text.substr(std::min(text.find('<', mark), text.size()), 2) == "</";
  if (is(">") && closed) return {Lead::kElement, mark + 1};
  if (name.use.option && mark > at && text[mark] != '-')
    return {Lead::kWord, mark + (is(kGiven) ? kGiven.size() : 0)};
  return mark > at && is_set(text, name, mark) ? Lead{Lead::kWord, mark} : Lead{};
}

// "NAME", "value"; "--name", type=str, default="value".
Literals values_of_item(std::string_view text, std::size_t from) {
  Literal one = string_at(text, from);
  bool option = one.behind && one.end > one.begin && text[one.begin] == '-';
  std::size_t next = skip_blanks(text, one.behind);
  if (one.behind && next < text.size() && text[next] == ':') return {};  // the next key of an object
  if (one.behind && !option) return {one};
  return default_argument(text, from);
}

Literals values_of(std::string_view text, const Name& name, const SecretName& rule, const Lead& lead) {
  if (lead.how == Lead::kNothing || lead.from >= text.size()) return {};
  Writing writing;
  writing.whole = rule.loud;
  writing.address = name.begin > 0 && (text[name.begin - 1] == '?' || text[name.begin - 1] == '&');
  writing.colon = lead.how == Lead::kMapped;
  writing.key = name.use.quoted;
  writing.name = name.begin;
  if (lead.how == Lead::kItem) return values_of_item(text, lead.from);
  if (lead.how == Lead::kCompared) return {string_at(text, lead.from)};
  Literals values = values_at(text, lead.from, writing);
  if (lead.how != Lead::kAssigned) return values;
  for (Literal one : passed_value(text, lead.from)) values.push_back(one);
  return values;
}

// An item of a list or object under the name: beside the secret other things may stand there.
bool can_be_item(const SecretName& rule, const Literal& one, std::string_view value) {
  constexpr std::size_t kShortestNumber = 4, kShortestNamedNumber = 6;
  bool number = value.find_first_not_of("0123456789") == kNone;
  bool generic = one.key.empty();
  for (std::string_view key : {"value", "default", "plain", "plaintext", "data", "raw", "string"})
    generic = generic || one.key == key;
  if (!generic && names_no_secret(one.key)) return false;
  if (names_one(value)) return false;
  if (number && !one.quoted) {
    std::size_t shortest = generic ? kShortestNumber : kShortestNamedNumber;
    return rule.looks == Looks::kAny && value.size() >= shortest;
  }
  if (!can_be_secret(rule, value, one.quoted)) return false;
  return (generic && one.quoted) || looks_made(value);
}

// SESSION_KEY = "session"
bool repeats(std::string_view name, std::string_view value) {
  auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  return std::search(name.begin(), name.end(), value.begin(), value.end(), same) != name.end();
}

// Returns where to go on: behind the value, if that goes.
std::size_t find_at(std::string_view text, const Name& name, Secrets* found) {
  SecretName rule = secret_name(name.text, name.use);
  bool user = name.begin >= 3 && text.substr(name.begin - 3, 3) == "://";  // find_urls() knows more
  std::size_t behind = name.end;
  if (!*rule.kind || user) return behind;
  Lead lead = lead_of(text, name);
  bool first = true;
  for (const Literal& one : values_of(text, name, rule, lead)) {
    bool of_user = std::exchange(first, false) && rule.pair && one.item;
    if (one.end <= one.begin || of_user) continue;
    std::size_t begin = skip_spaces(text, one.begin), end = one.end;  // """ and an empty line
    while (end > begin && is_space(text[end - 1])) --end;
    std::string_view value = text.substr(begin, end - std::min(begin, end));
    SecretName judged = rule;
    if (rule.pair && one.item) judged.looks = Looks::kAny;
    bool is = one.item ? can_be_item(judged, one, value) : can_be_secret(judged, value, one.quoted);
    bool one_of_names = lead.how == Lead::kItem && *secret_name(value).kind && !looks_random(value);
    bool told_again = rule.looks != Looks::kAny && repeats(name.text, value);
    if (!is || one_of_names || told_again) continue;
    found->push_back({begin, end, std::string(rule.kind) + " by its name"});
    if (begin == lead.from) behind = end;
  }
  return behind;
}

// A word that names much; with such a value it is Kaggle's or W&B's.
bool is_plain_key(std::string_view value) {
  bool hex = value.find_first_not_of("0123456789abcdef") == kNone;
  return (value.size() == 32 || value.size() == 40) && hex && looks_random(value);
}

void find_plain_key(std::string_view text, const Name& name, Secrets* found) {
  if (name.text != "key") return;
  Lead lead = lead_of(text, name);
  if (lead.how != Lead::kAssigned && lead.how != Lead::kMapped) return;
  Literal one = string_at(text, lead.from);
  if (one.behind && is_plain_key(text.substr(one.begin, one.end - one.begin)))
    found->push_back({one.begin, one.end, "key by its name"});
}

Name name_at(std::string_view text, std::size_t at) {
  Name name{{}, at, at, {}};
  while (name.end < text.size() && in_name(text[name.end])) ++name.end;
  std::size_t dashes = at;
  while (dashes < name.end && text[dashes] == '-') ++dashes;
  name.use.option = dashes > at && dashes - at <= 2;
  name.use.quoted = at > 0 && is_quote(text[at - 1]);
  name.begin = dashes;
  name.text = text.substr(dashes, name.end - dashes);
  return name;
}

// .netrc: machine host login user password word
void find_netrc(std::string_view text, const Name& name, Secrets* found) {
  if (name.text != "password") return;
  std::string_view before = before_in_line(text, name.begin, 300);
  bool first = before.find_first_not_of(" \t") == kNone;
  if (before.find("login ") == kNone && before.find("machine ") == kNone && !first) return;
  std::size_t from = skip_blanks(text, name.end), end = from;
  while (end < text.size() && !is_space(text[end])) ++end;
  bool last = ends_line(text, skip_blanks(text, end));
  if (from > name.end && end > from && last && text[from] != '=' && text[from] != ':')
    found->push_back({from, end, "password by its name"});
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
    at = name.end;
    if (name.text.empty() || name.text.size() > kLongestName) continue;
    find_plain_key(text, name, found);
    find_netrc(text, name, found);
    at = find_at(text, name, found);
  }
}

}  // namespace dshang::issue
