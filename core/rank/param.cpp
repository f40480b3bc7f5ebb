#include "core/rank/param.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

namespace dshang::rank {
namespace {

// Texts of string and choice parameters: the environment's own memory may be freed by a later putenv.
constexpr unsigned kTextBytes = 32768;
constexpr unsigned kLongestText = 4095;  // as a path may be
char texts[kTextBytes];
std::atomic<unsigned> texts_used{0};

const char* keep(const char* text) {
  unsigned length = static_cast<unsigned>(strlen(text)) + 1;
  unsigned at = texts_used.fetch_add(length, std::memory_order_relaxed);
  if (at + length > kTextBytes) return "";
  memcpy(texts + at, text, length);
  return texts + at;
}

// Digits with an optional fraction.  strtod would follow the host's locale.  Returns the end, null if there
// is none.
const char* number(const char* at, double* value) {
  bool negative = *at == '-';
  if (*at == '-' || *at == '+') ++at;
  if (!((*at >= '0' && *at <= '9') || *at == '.')) return nullptr;
  double whole = 0, scale = 1;
  bool digits = false;
  for (; *at >= '0' && *at <= '9'; ++at, digits = true) whole = whole * 10 + (*at - '0');
  if (*at == '.') {
    for (++at; *at >= '0' && *at <= '9'; ++at, digits = true) whole += (*at - '0') * (scale /= 10);
  }
  if (!digits) return nullptr;
  *value = negative ? -whole : whole;
  return at;
}

// "LOW..HIGH", each perhaps followed by `unit`.
bool limits(const char* range, const char* unit, double* low, double* high) {
  // The two points end the low number before its fraction can be mistaken.
  const char* dots = strstr(range, "..");
  if (!dots) return false;
  char first[32];
  size_t length = static_cast<size_t>(dots - range);
  if (length >= sizeof first) return false;
  memcpy(first, range, length);
  first[length] = 0;
  const char* end = number(first, low);
  if (!end || strcmp(end, unit) != 0) return false;
  end = number(dots + 2, high);
  return end && strcmp(end, unit) == 0;
}

bool within(const ParamDescriptor& param, const char* unit, double value) {
  double low, high;
  return limits(param.range, unit, &low, &high) && value >= low && value <= high;
}

bool is(const ParamDescriptor& param, const char* type) { return strcmp(param.type, type) == 0; }

bool read_bool(const char* text, bool* value) {
  static const char words[8][6] = {"0", "false", "no", "off", "1", "true", "yes", "on"};
  for (unsigned i = 0; i < 8; ++i) {
    if (strcasecmp(text, words[i]) == 0) {
      *value = i >= 4;
      return true;
    }
  }
  return false;
}

bool read_integer(const char* text, std::int64_t* value) {
  const char* at = text;
  bool negative = *at == '-';
  if (*at == '-' || *at == '+') ++at;
  if (!*at) return false;
  std::int64_t n = 0;
  for (; *at; ++at) {
    if (*at < '0' || *at > '9' || __builtin_mul_overflow(n, std::int64_t{10}, &n)) return false;
    if (__builtin_add_overflow(n, std::int64_t{*at - '0'}, &n)) return false;
  }
  *value = negative ? -n : n;
  return true;
}

bool read_seconds(const char* text, double* value) {
  const char* end = number(text, value);
  return end && (!*end || strcmp(end, "s") == 0);
}

bool read_amount(const char* text, PercentOrBytes* value) {
  double amount;
  const char* end = number(text, &amount);
  if (!end || amount < 0) return false;
  while (*end == ' ') ++end;
  if (strcmp(end, "%") == 0) {
    *value = {amount, 0, true};
    return true;
  }
  static const char units[] = "kmgt";
  double scale = 1;
  if (*end && *end != 'b' && *end != 'B') {
    const char* unit = static_cast<const char*>(memchr(units, *end | 0x20, 4));
    if (!unit) return false;
    for (const char* u = units; u <= unit; ++u) scale *= 1024;
    ++end;
    if (*end == 'i') ++end;
  }
  if (*end == 'b' || *end == 'B') ++end;
  if (*end || amount * scale > 1.8e19) return false;
  *value = {0, static_cast<std::uint64_t>(amount * scale), false};
  return true;
}

bool read_choice(const char* range, const char* text, unsigned* index) {
  *index = 0;
  for (const char* at = range;; ++*index) {
    const char* end = strchr(at, '|');
    size_t length = end ? static_cast<size_t>(end - at) : strlen(at);
    bool open = length && at[length - 1] == '*';
    size_t fixed = open ? length - 1 : length;
    if (strncasecmp(text, at, fixed) == 0 && (open ? text[fixed] != 0 : text[fixed] == 0)) return true;
    if (!end) return false;
    at = end + 1;
  }
}

// The value may hold anything; the line goes to a terminal.
void make_printable(char* line) {
  for (; *line; ++line) {
    if (static_cast<unsigned char>(*line) < ' ' || *line == 127) *line = '?';
  }
}

}  // namespace

bool param_accepts(const ParamDescriptor& param, const char* text) {
  if (!*text) return true;
  bool flag;
  std::int64_t whole;
  double real;
  PercentOrBytes amount;
  unsigned index;
  if (is(param, "bool")) return read_bool(text, &flag);
  if (is(param, "integer"))
    return read_integer(text, &whole) && within(param, "", static_cast<double>(whole));
  if (is(param, "seconds")) return read_seconds(text, &real) && within(param, "", real);
  if (is(param, "percent_or_bytes")) {
    return read_amount(text, &amount) && (!amount.is_percent || within(param, "%", amount.percent));
  }
  if (strlen(text) > kLongestText) return false;
  if (is(param, "choice")) return read_choice(param.range, text, &index);
  return is(param, "string");
}

bool complain_about(const ParamDescriptor& param, const char* text, char* line, std::size_t size) {
  if (param_accepts(param, text)) return false;
  if (strlen(text) > kLongestText) {
    snprintf(line, size, "DSHANG_%s=%.80s... is longer than %u bytes; the default %s is used", param.name,
             text, kLongestText, *param.fallback ? param.fallback : "(empty)");
    make_printable(line);
    return true;
  }
  const char* what = is(param, "seconds")            ? "a number of seconds in "
                     : is(param, "integer")          ? "a whole number in "
                     : is(param, "percent_or_bytes") ? "a number of bytes, or a percentage in "
                                                     : "one of ";
  snprintf(line, size, "DSHANG_%s=%.80s is not %s%s; the default %s is used", param.name, text, what,
           param.range, *param.fallback ? param.fallback : "(empty)");
  make_printable(line);
  return true;
}

namespace detail {

const char* param_text(const ParamDescriptor& param) {
  char name[64];
  snprintf(name, sizeof name, "DSHANG_%s", param.name);
  const char* text = getenv(name);
  return text && *text && param_accepts(param, text) ? text : param.fallback;
}

void parse(const ParamDescriptor&, const char* text, bool* value) { read_bool(text, value); }
void parse(const ParamDescriptor&, const char* text, std::int64_t* value) { read_integer(text, value); }
void parse(const ParamDescriptor&, const char* text, double* value) { read_seconds(text, value); }
void parse(const ParamDescriptor&, const char* text, PercentOrBytes* value) { read_amount(text, value); }

void parse(const ParamDescriptor& param, const char* text, const char** value) {
  *value = text == param.fallback ? text : keep(text);
}

void parse(const ParamDescriptor& param, const char* text, Choice* value) {
  read_choice(param.range, text, &value->index);
  value->text = text == param.fallback ? text : keep(text);
}

// Another thread reads for about a microsecond.  The bound is for a child forked within it.
bool claim_param(std::atomic<std::uint8_t>& state) {
  std::uint8_t unread = 0;
  if (state.compare_exchange_strong(unread, 1, std::memory_order_acq_rel)) return true;
  for (unsigned i = 0; i < 10000 && state.load(std::memory_order_acquire) == 1; ++i) sched_yield();
  return false;
}

}  // namespace detail
}  // namespace dshang::rank
