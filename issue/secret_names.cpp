#include "issue/secret_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace dshang::issue {
namespace {

using Words = std::vector<std::string>;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <std::size_t kCount>
bool among(const std::string& word, const std::array<const char*, kCount>& words) {
  return std::any_of(words.begin(), words.end(), [&](const char* one) { return word == one; });
}

// "SharedAccessKey", "HF_TOKEN", "--api-key" -> small letters, word by word.
Words words_of(std::string_view name) {
  Words words;
  std::string word;
  auto close = [&] {
    if (!word.empty()) words.push_back(std::move(word));
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
  return words;
}

// Something about a secret, not the secret.
constexpr std::array kAbout = {"file",    "path",  "dir",           "folder", "length",   "policy",
                               "prompt",  "name",  "type",          "ids",    "count",    "manager",
                               "url",     "uri",   "helper",        "method", "provider", "expiry",
                               "expires", "limit", "authentication"};
constexpr std::array kPasswords = {"passwd",   "passphrase", "passcode",  "pwd",
                                   "mnemonic", "userpwd",    "passwords", "sshpass"};
// Whose "pass" is a password.
constexpr std::array kPassOf = {"ssh",   "become", "sudo", "db",    "smtp", "mail",
                                "redis", "mysql",  "user", "admin", "login"};
constexpr std::array kSecrets = {"secret", "secrets", "credential", "credentials", "cookie", "pat"};
// Words of keys that open something; "key" alone is that of a map.
constexpr std::array kKeysOf = {"api",        "access",     "private",  "secret", "account", "subscription",
                                "license",    "encryption", "signing",  "shared", "storage", "auth",
                                "ssh",        "app",        "service",  "client", "deploy",  "session",
                                "decryption", "webhook",    "admin",    "hmac",   "jwt",     "sas",
                                "wandb",      "openai",     "consumer", "azure",  "fernet",  "master"};
// Tokens of a text.
constexpr std::array kTextTokens = {
    "pad",   "eos", "bos",    "sep",     "cls",    "mask",    "unk",   "image", "video", "audio",
    "next",  "per", "num",    "max",     "min",    "special", "start", "end",   "stop",  "first",
    "last",  "new", "prev",   "decoder", "target", "vision",  "mean",  "each",  "extra", "position",
    "class", "eot", "prompt", "padding", "text",   "is",      "sub",   "one",   "any",   "distill"};

bool holds(const Words& words, const auto& of) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return among(word, of); });
}

bool is_key(const Words& words) {
  static constexpr std::array kWhole = {"apikey", "accesskey", "secretkey", "privatekey", "authkey"};
  if (holds(words, kWhole)) return true;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if ((words[i] == "key" || words[i] == "keys") && among(words[i - 1], kKeysOf)) return true;
  }
  return false;
}

bool is_token(const Words& words) {
  static constexpr std::array kWhole = {"authtoken", "accesstoken", "apitoken", "bearertoken"};
  if (holds(words, kWhole)) return true;
  auto at = std::find(words.begin(), words.end(), "token");
  if (at == words.end()) return false;
  bool of_text = at != words.begin() && among(*(at - 1), kTextTokens);
  bool last = at + 1 == words.end() || *(at + 1) == "value" || *(at + 1) == "secret" || *(at + 1) == "key";
  return last && !of_text;
}

bool is_password(const Words& words) {
  return holds(words, kPasswords) || std::any_of(words.begin(), words.end(), [](const std::string& word) {
           return word.ends_with("password");  // PGPASSWORD
         });
}

bool is_pass(std::string_view name, const Words& words) {
  bool capitals = std::none_of(name.begin(), name.end(), is_lower);
  static constexpr std::array kRuns = {"forward", "backward", "per", "one", "single", "first", "second"};
  if (words.size() < 2 || words.back() != "pass") return false;
  return among(words[words.size() - 2], kPassOf) || (capitals && !holds(words, kRuns));
}

}  // namespace

std::string secret_name_kind(std::string_view name) {
  if (name == "PWD" || name == "OLDPWD") return "";
  Words words = words_of(name);
  if (words.empty()) return "";
  bool hook = words.size() > 1 && words[words.size() - 2] == "webhook" && words.back() == "url";
  if (hook) return "webhook";
  if (among(words.back(), kAbout)) return "";
  if (is_password(words) || is_pass(name, words)) return "password";
  if (is_key(words)) return "key";
  if (holds(words, kSecrets)) return "secret";
  if (is_token(words)) return "token";
  if (words.size() > 1 && words[words.size() - 2] == "connection" && words.back() == "string")
    return "connection string";
  return "";
}

bool says_nothing(std::string_view value) {
  static constexpr std::array kWords = {
      "none",  "null",    "true", "false", "auto",   "str",      "string",    "int",      "bool",
      "bytes", "yes",     "no",   "on",    "off",    "default",  "undefined", "required", "unset",
      "any",   "not set", "set",  "empty", "hidden", "redacted", "missing",   "invalid"};
  std::string small;
  for (char c : value) small += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (small.size() < 2 || among(small, kWords)) return true;
  if (small.find("[redacted") == 0 || small.find("optional[") == 0) return true;
  if (small[0] == '$' || small[0] == '<' || small[0] == '{' || small[0] == '%') return true;
  return small.find_first_not_of("*x.-_") == std::string::npos;
}

bool is_expression(std::string_view value) {
  std::size_t at = 0;
  auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  if (value.empty() || !letter(value[0])) return false;
  while (at < value.size() && (letter(value[at]) || is_digit(value[at]))) ++at;
  if (at == value.size()) return false;
  if (value[at] == '(' || value[at] == '[') return true;
  return value[at] == '.' && at + 1 < value.size() && letter(value[at + 1]) && !looks_random(value);
}

bool looks_random(std::string_view value) {
  constexpr std::size_t kShortest = 16;
  std::size_t digits = 0, letters = 0;
  for (char c : value) {
    digits += is_digit(c) ? 1 : 0;
    letters += is_upper(c) || is_lower(c) ? 1 : 0;
  }
  return value.size() >= kShortest && digits >= 2 && letters >= 2;
}

}  // namespace dshang::issue
