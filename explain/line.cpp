#include "explain/line.h"

#include <cctype>

namespace dshang::explain {
namespace {

constexpr int kMostPrefixes = 6;
constexpr std::size_t kMostDigits = 9;
constexpr std::size_t kLongestName = 64;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }

bool take(std::string_view text, std::size_t* at, std::string_view word) {
  if (text.substr(*at, word.size()) != word) return false;
  *at += word.size();
  return true;
}

// [rank3]: and [default3]:, whatever the role is called.
std::size_t role_prefix(std::string_view text, Speaker* who) {
  std::size_t at = 1;
  while (at < text.size() && letter(text[at])) ++at;
  std::string_view role = text.substr(1, at - 1);
  long number = read_number(text, &at);
  if (role.empty() || number < 0 || !take(text, &at, "]:")) return 0;
  bool global = role == "rank";
  if (global || who->rank < 0) {
    who->rank = static_cast<int>(number);
    who->local = !global;
  }
  if (global && at < text.size() && text[at] == ' ') ++at;
  return at;
}

// [1,3]<stdout>:
std::size_t mpirun_prefix(std::string_view text, Speaker* who) {
  std::size_t at = 1;
  if (read_number(text, &at) < 0 || !take(text, &at, ",")) return 0;
  long rank = read_number(text, &at);
  if (rank < 0 || !take(text, &at, "]<std")) return 0;
  std::size_t end = text.substr(0, kLongestName).find(">:", at);
  if (end == std::string_view::npos) return 0;
  who->rank = static_cast<int>(rank);
  who->local = false;
  return end + 2;
}

std::size_t srun_prefix(std::string_view text, Speaker* who) {
  std::size_t at = 0;
  while (at < text.size() && text[at] == ' ') ++at;
  long rank = read_number(text, &at);
  if (rank < 0 || !take(text, &at, ": ")) return 0;
  if (who->rank < 0) who->rank = static_cast<int>(rank);
  return at;
}

// Host names have no capitals, unlike classes of exceptions, and a digit, hyphen or dot, unlike words.
std::size_t pdsh_prefix(std::string_view text, Speaker* who) {
  std::size_t at = 0;
  bool telling = false;
  for (; at < text.size() && at < kLongestName; ++at) {
    char c = text[at];
    bool tells = digit(c) || c == '-' || c == '.';
    if (!tells && !(c >= 'a' && c <= 'z')) break;
    telling = telling || tells;
  }
  if (!telling ||
      digit(text[0]) != (text.substr(0, at).find_first_not_of("0123456789.") == std::string_view::npos))
    return 0;
  std::string_view name = text.substr(0, at);
  if (!take(text, &at, ": ") || who->node == name) return 0;
  who->node = name;
  return at;
}

// (WorkerDict pid=77, ip=10.0.0.1)
std::size_t ray_prefix(std::string_view text, Speaker* who) {
  std::size_t end = text.substr(0, 2 * kLongestName).find(") "), pid = text.find(" pid=");
  if (end == std::string_view::npos || pid == std::string_view::npos || pid > end) return 0;
  std::size_t ip = text.find(", ip=");
  if (ip != std::string_view::npos && ip < end) who->node = text.substr(ip + 5, end - ip - 5);
  return end + 2;
}

// 2026-11-02T10:00:00.123Z and 2026-11-02 10:00:00,123, as collectors of logs put before a line.
std::size_t time_prefix(std::string_view text) {
  static constexpr std::string_view kForm = "dddd-dd-dd?dd:dd:dd";
  if (text.size() <= kForm.size()) return 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    char form = kForm[i], c = text[i];
    if (form == 'd' ? !digit(c) : form == '?' ? c != 'T' && c != ' ' : c != form) return 0;
  }
  std::size_t at = kForm.size();
  while (at < text.size() &&
         (digit(text[at]) || std::string_view(".,Z+-:").find(text[at]) != std::string_view::npos))
    ++at;
  return at < text.size() && text[at] == ' ' ? at + 1 : 0;
}

std::size_t prefix_length(std::string_view text, Speaker* who) {
  if (text.empty()) return 0;
  char c = text[0];
  if (c == '[') {
    std::size_t length = role_prefix(text, who);
    return length ? length : mpirun_prefix(text, who);
  }
  if (c == '(') return ray_prefix(text, who);
  if (digit(c) || c == ' ') {
    std::size_t length = time_prefix(text);
    if (!length) length = srun_prefix(text, who);
    return length || c == ' ' ? length : pdsh_prefix(text, who);
  }
  return c >= 'a' && c <= 'z' ? pdsh_prefix(text, who) : 0;
}

}  // namespace

long read_number(std::string_view text, std::size_t* at) {
  std::size_t begin = *at, end = begin;
  long value = 0;
  while (end < text.size() && end - begin <= kMostDigits && digit(text[end]))
    value = value * 10 + (text[end++] - '0');
  if (end == begin || end - begin > kMostDigits) return -1;
  *at = end;
  return value;
}

std::string_view without_prefixes(std::string_view text, Speaker* who) {
  for (int i = 0; i < kMostPrefixes; ++i) {
    std::size_t length = prefix_length(text, who);
    if (!length) break;
    text.remove_prefix(length);
  }
  return text;
}

std::string_view without_colours(std::string_view text, std::string* scratch) {
  if (text.find('\x1b') == std::string_view::npos) return text;
  scratch->clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      *scratch += text[i];
      continue;
    }
    if (i + 1 >= text.size() || text[i + 1] != '[') continue;
    ++i;
    while (i + 1 < text.size() && !(text[i + 1] >= '@' && text[i + 1] <= '~')) ++i;
    ++i;
  }
  return *scratch;
}

}  // namespace dshang::explain
