// Arguments of functions.
#include <algorithm>

#include "issue/call_forms.h"
#include "issue/find_secrets.h"
#include "issue/secret_names.h"

namespace dshang::issue {
namespace {

struct CallForm {
  const char* function;  // the end of its name; "^…" the whole
  std::size_t argument;  // the secret, counted from 0
  Looks looks;
  bool under_name = false;  // only as the value of a secret's name
  const char* kind = "";
};

constexpr CallForm kCalls[] = {
    {"wandb.login", 1, Looks::kAny, false, "W&B key"},
    {"huggingface_hub.login", 0, Looks::kAny, false, "Hugging Face token"},
    {"hf_login", 0, Looks::kAny, false, "Hugging Face token"},
    {"HfApi", 1, Looks::kAny, false, "Hugging Face token"},
    {"HfFolder.save_token", 0, Looks::kAny, false, "Hugging Face token"},
    {"comet_ml.init", 0, Looks::kMade, false, "Comet key"},
    {"comet_ml.login", 0, Looks::kMade, false, "Comet key"},
    {"comet_ml.Experiment", 0, Looks::kMade, false, "Comet key"},
    {"^login", 0, Looks::kMade, false, "password of a login"},
    {"login", 1, Looks::kAny, false, "password of a login"},
    {"HTTPBasicAuth", 1, Looks::kAny, false, "password of a login"},
    {"HTTPDigestAuth", 1, Looks::kAny, false, "password of a login"},
    {"HTTPProxyAuth", 1, Looks::kAny, false, "password of a login"},
    {"BasicAuth", 1, Looks::kAny, false, "password of a login"},
    {"set_password", 2, Looks::kAny, false, "password of a login"},
    {"SecretStr", 0, Looks::kAny, false, "secret in a program"},
    {"SecretBytes", 0, Looks::kAny, false, "secret in a program"},
    {"Fernet", 0, Looks::kMade, false, "secret in a program"},
    {"Field", 0, Looks::kAny, true},
    {"str", 0, Looks::kAny, true},
    {"bytes", 0, Looks::kAny, true},
    {"quote", 0, Looks::kAny, true},
    {"quote_plus", 0, Looks::kAny, true},
    {"get", 1, Looks::kAny, true},
    {"getenv", 1, Looks::kAny, true},
    {"pop", 1, Looks::kAny, true},
    {"getattr", 2, Looks::kAny, true},
};

constexpr std::size_t kLongestCall = 2000;
constexpr int kDeepestCall = 5;

bool in_function(char c) { return in_word(c) || c == '.'; }

struct Argument {
  std::string_view name;
  Literal value;  // where it is a string
};

// From the first one on, up to the bracket that closes the call.
std::vector<Argument> arguments_at(std::string_view text, std::size_t at) {
  std::vector<Argument> arguments(1);
  const std::size_t limit = std::min(text.size(), at + kLongestCall);
  int depth = 0;
  for (bool begins = true; at < limit && depth <= kDeepestCall; ++at) {
    char c = text[at];
    if (Literal one = string_at(text, at); one.behind) {
      if (begins && depth == 0) arguments.back().value = one;
      begins = false;
      at = one.behind - 1;
    } else if (c == ',' && depth == 0) {
      arguments.push_back({});
      begins = true;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
      begins = false;
    } else if (c == ')' || c == ']' || c == '}') {
      if (--depth < 0) break;
    } else if (begins && in_word(c)) {
      std::size_t end = at;
      while (end < limit && in_word(text[end])) ++end;
      std::size_t equals = skip_blanks(text, end);
      bool named = equals < limit && text[equals] == '=' && text.substr(equals, 2) != "==";
      if (named) arguments.back().name = text.substr(at, end - at);
      at = named ? equals : end - 1;
      begins = named;
    } else if (!is_space(c)) {
      begins = false;
    }
  }
  return arguments;
}

bool is_called(std::string_view function, std::string_view name) {
  if (name[0] == '^') return function == name.substr(1);
  if (!function.ends_with(name)) return false;
  return function.size() == name.size() || function[function.size() - name.size() - 1] == '.';
}

Literal argument_of(const std::vector<Argument>& arguments, std::size_t number) {
  if (number >= arguments.size() || !arguments[number].name.empty()) return {};
  return arguments[number].value;
}

}  // namespace

Literals default_argument(std::string_view text, std::size_t from) {
  for (const Argument& one : arguments_at(text, from)) {
    if (one.name == "default" && one.value.behind) return {one.value};
  }
  return {};
}

Literals passed_value(std::string_view text, std::size_t from) {
  std::size_t end = from;
  while (end < text.size() && in_function(text[end])) ++end;
  if (end == from || end >= text.size() || text[end] != '(') return {};
  std::vector<Argument> arguments = arguments_at(text, end + 1);
  Literals found = default_argument(text, end + 1);
  for (const CallForm& form : kCalls) {
    if (!form.under_name || !is_called(text.substr(from, end - from), form.function)) continue;
    if (Literal one = argument_of(arguments, form.argument); one.behind) found.push_back(one);
  }
  return found;
}

void find_calls(std::string_view text, Secrets* found) {
  for (std::size_t open = text.find('('); open != kNone; open = text.find('(', open + 1)) {
    std::size_t begin = open;
    while (begin > 0 && in_function(text[begin - 1])) --begin;
    std::string_view function = text.substr(begin, open - begin);
    if (function.empty()) continue;
    for (const CallForm& form : kCalls) {
      if (form.under_name || !is_called(function, form.function)) continue;
      Literal one = argument_of(arguments_at(text, open + 1), form.argument);
      std::string_view value = text.substr(one.begin, one.end - one.begin);
      if (one.behind && can_be_secret({form.kind, form.looks}, value, true))
        found->push_back({one.begin, one.end, form.kind});
    }
  }
}

}  // namespace dshang::issue
