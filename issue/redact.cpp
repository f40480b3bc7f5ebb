#include "issue/redact.h"

#include <algorithm>
#include <cctype>

#include "issue/find_secrets.h"
#include "issue/secret_names.h"
#include "issue/unescape.h"

namespace dshang::issue {
namespace {

// What is shorter, or a plain word, would be found where it is none.
bool can_be_looked_for(std::string_view secret) {
  constexpr std::size_t kShortest = 8, kLongWord = 16;
  bool plain = std::all_of(secret.begin(), secret.end(), [](unsigned char c) { return std::isalpha(c); });
  return secret.size() >= kShortest && (!plain || secret.size() >= kLongWord);
}

// "" where the name is none of a secret, or the value can be none.
std::string kind_by_name(std::string_view name, std::string_view value) {
  SecretName rule = secret_name(name);
  return *rule.kind && can_be_secret(rule, value, true) ? std::string(rule.kind) + " by its name" : "";
}

// Known secrets that stand alone, beside those that were found.
void add_known(std::string_view text, const std::map<std::string, std::string>& known, Secrets* found) {
  for (const auto& [secret, kind] : known) {
    for (std::size_t at = text.find(secret); at != text.npos; at = text.find(secret, at + 1)) {
      std::size_t end = at + secret.size();
      bool alone = (at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end]));
      bool inside = std::any_of(found->begin(), found->end(),
                                [&](const Secret& one) { return at < one.end && end > one.begin; });
      if (alone && !inside) found->push_back({at, end, kind});
    }
  }
  std::sort(found->begin(), found->end(), [](const Secret& a, const Secret& b) { return a.begin < b.begin; });
}

}  // namespace

void Redactor::remember(std::string_view secret, const std::string& kind) {
  if (!can_be_looked_for(secret)) return;
  for (const std::string& written :
       {std::string(secret), as_in_address(secret), as_in_json(secret), as_in_base64(secret)})
    known_.emplace(written, kind);
}

void Redactor::learn(std::string_view text) {
  for (const Secret& secret : find_secrets(text))
    remember(text.substr(secret.begin, secret.end - secret.begin), secret.kind);
}

void Redactor::learn_value(std::string_view name, std::string_view value) {
  if (std::string kind = kind_by_name(name, value); !kind.empty()) remember(value, kind);
  learn(value);
}

std::string Redactor::mark(const std::string& kind, const std::string& where) {
  ++done_[{kind, where}];
  return "[redacted: " + kind + "]";
}

std::string Redactor::clean(std::string_view text, const std::string& where) {
  Secrets found = find_secrets(text);
  add_known(text, known_, &found);
  std::string result;
  std::size_t from = 0;
  for (const Secret& secret : found) {
    if (secret.begin < from) continue;
    result += text.substr(from, secret.begin - from);
    result += mark(secret.kind, where);
    from = secret.end;
  }
  return result += text.substr(from);
}

std::string Redactor::clean_value(std::string_view name, std::string_view value, const std::string& where) {
  if (std::string kind = kind_by_name(name, value); !kind.empty()) return mark(kind, where);
  return clean(value, where);
}

std::vector<Redactor::Count> Redactor::done() const {
  std::vector<Count> result;
  for (const auto& [at, count] : done_) result.push_back({at.first, at.second, count});
  return result;
}

}  // namespace dshang::issue
