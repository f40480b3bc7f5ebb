#include "issue/find_secrets.h"

#include <algorithm>
#include <cctype>

#include "issue/scan.h"
#include "issue/secret_forms.h"
#include "issue/secret_names.h"

namespace dshang::issue {
namespace {

std::size_t end_of_run(std::string_view text, std::size_t at, Letters letters) {
  while (at < text.size() && is_letter_of(letters, text[at])) ++at;
  return at;
}

bool has_digit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Addresses end with a letter of theirs, sentences with a full stop.
std::size_t without_stop(std::string_view text, std::size_t begin, std::size_t end) {
  while (end > begin && (text[end - 1] == '.' || text[end - 1] == ':' || text[end - 1] == '?')) --end;
  return end;
}

void find_form(std::string_view text, std::size_t at, const SecretForm& form, Secrets* found) {
  std::string_view prefix = form.prefix;
  if (text.substr(at, prefix.size()) != prefix) return;
  bool address = prefix.find('/') != kNone;
  if (!address && !begins_here(text, at)) return;
  std::size_t from = at + prefix.size();
  std::size_t end = without_stop(text, from, end_of_run(text, from, form.letters));
  std::size_t length = end - from;
  if (length < form.shortest || length > form.longest) return;
  if (form.mixed && !has_digit(text.substr(from, length))) return;
  if (form.longest < 1000 && end < text.size() && in_word(text[end])) return;
  found->push_back({form.keeps_prefix ? from : at, end, form.kind});
}

// Takes one part; a part of one length ends there whatever follows, since the next one may go on at once.
std::size_t end_of_part(std::string_view text, std::size_t at, const Part& part) {
  std::string_view before = part.before;
  if (text.substr(at, before.size()) != before) return kNone;
  std::size_t from = at + before.size();
  bool fixed = part.shortest == part.longest;
  std::size_t end = end_of_run(text.substr(0, from + part.longest + (fixed ? 0 : 1)), from, part.letters);
  return end - from >= part.shortest && end - from <= part.longest ? end : kNone;
}

void find_parted(std::string_view text, std::size_t at, const PartedForm& form, Secrets* found) {
  std::size_t end = at;
  for (const Part& part : form.parts) {
    if (part.before == nullptr) break;
    end = end_of_part(text, end, part);
    if (end == kNone) return;
  }
  if (end < text.size() && in_word(text[end])) return;
  found->push_back({at, without_stop(text, at, end), form.kind});
}

// Behind the last line that can belong to the block of a key that is not closed.
std::size_t end_of_open_block(std::string_view text, std::size_t at) {
  constexpr std::size_t kShortestLine = 16;
  while (at < text.size()) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    bool of_key = line.size() >= kShortestLine && std::all_of(line.begin(), line.end(), [](char c) {
                    return is_letter_of(Letters::kBase64, c) || c == '\r' || c == ' ';
                  });
    if (!of_key && !line.empty()) return at;
    at = std::min(end + 1, text.size());
  }
  return at;
}

bool ends_address(char c) {
  return std::isspace(static_cast<unsigned char>(c)) || std::string_view("\"'`<>|\\^{}").find(c) != kNone;
}

// Of scheme://…: where the user and password end, kNone where there are none.
std::size_t end_of_user(std::string_view text, std::size_t from) {
  constexpr std::size_t kLongestUser = 2000;
  std::size_t end = from, slash = kNone;
  text = text.substr(0, from + kLongestUser);
  while (end < text.size() && !ends_address(text[end])) {
    if (slash == kNone && std::string_view("/?#").find(text[end]) != kNone) slash = end;
    ++end;
  }
  std::string_view authority = text.substr(from, std::min(slash, end) - from);
  std::size_t at = authority.rfind('@');
  if (at != kNone) return from + at;
  // A password with a slash in it: what stands behind the colon is no port then.
  std::size_t colon = authority.find(':'), later = text.substr(from, end - from).rfind('@');
  if (colon == kNone || later == kNone || colon + 1 >= authority.size()) return kNone;
  std::string_view port = authority.substr(colon + 1);
  bool number = port.find_first_not_of("0123456789") == kNone;
  return number ? kNone : from + later;
}

// What of user[:password] is not to be read; ssh's user names are no secret.
std::size_t begin_of_password(std::string_view scheme, std::string_view user, std::size_t from) {
  std::size_t colon = user.find(':');
  if (colon != kNone) return colon + 1 == user.size() ? kNone : from;
  bool web = scheme.ends_with("http") || scheme.ends_with("https");
  return web && user != "git" && !says_nothing(user) ? from : kNone;
}

// ?sig=…, &X-Amz-Signature=…
void find_signature(std::string_view text, std::size_t at, Secrets* found) {
  if (text[at] != '?' && text[at] != '&') return;
  std::size_t equals = at + 1;
  while (equals < text.size() && (is_letter_of(Letters::kWord, text[equals]))) ++equals;
  if (equals >= text.size() || text[equals] != '=') return;
  std::string name(text.substr(at + 1, equals - at - 1));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  bool signs = name == "sig" || name == "signature" || name == "key" || name == "code" || name == "auth" ||
               name.ends_with("-signature") || name.ends_with("-credential") || name.ends_with("-token");
  constexpr std::size_t kLongestSignature = 4000;
  std::size_t end = equals + 1;
  text = text.substr(0, end + kLongestSignature);
  while (end < text.size() && !ends_address(text[end]) && text[end] != '&' && text[end] != '#') ++end;
  if (signs && end - equals > 8) found->push_back({equals + 1, end, "signature in a URL"});
}

bool same_letters(std::string_view text, std::size_t at, std::string_view small) {
  if (text.size() - at < small.size()) return false;
  for (std::size_t i = 0; i < small.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[at + i])) != small[i]) return false;
  }
  return true;
}

// The value of a header that began at `at`: to the end of the line, or of the quotes it stands in.
std::size_t end_of_header(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongestHeader = 1 << 14;
  text = text.substr(0, at + kLongestHeader);
  while (at < text.size() && text[at] != '\n' && text[at] != '\r' && text[at] != '"' && text[at] != '\'' &&
         text[at] != '\\')
    ++at;
  return at;
}

std::size_t skip(std::string_view text, std::size_t at, std::string_view letters) {
  while (at < text.size() && letters.find(text[at]) != kNone) ++at;
  return at;
}

std::size_t skip_scheme(std::string_view text, std::size_t at) {
  for (const char* scheme : {"bearer ", "basic ", "token ", "digest ", "negotiate ", "apikey "}) {
    if (same_letters(text, at, scheme)) return skip(text, at + std::string_view(scheme).size(), " ");
  }
  return at;
}

void find_header(std::string_view text, std::size_t at, std::string_view name, const char* kind,
                 Secrets* found) {
  if (!same_letters(text, at, name) || !begins_here(text, at)) return;
  std::size_t value = skip(text, at + name.size(), "\"'\\");
  value = skip(text, value, " \t");
  if (value >= text.size() || (text[value] != ':' && text[value] != '=' && text[value] != ',')) return;
  value = skip(text, skip(text, value + 1, " \t"), "\"'\\");
  value = skip_scheme(text, value);
  std::size_t end = end_of_header(text, value);
  std::string_view secret = text.substr(value, end - value);
  constexpr std::size_t kShortest = 6;
  if (secret.size() >= kShortest && !says_nothing(secret) && !is_expression(secret))
    found->push_back({value, end, kind});
}

// "Bearer <token>" without the header's name before it.
void find_bearer(std::string_view text, std::size_t at, Secrets* found) {
  constexpr std::string_view kScheme = "bearer ";
  if (!same_letters(text, at, kScheme) || !begins_here(text, at)) return;
  std::size_t from = skip(text, at + kScheme.size(), " "), end = from;
  while (end < text.size() &&
         (is_letter_of(Letters::kBase64, text[end]) || text[end] == '.' || text[end] == '~'))
    ++end;
  std::string_view token = text.substr(from, end - from);
  bool whole = at > 0 && is_quote(text[at - 1]) && end < text.size() && is_quote(text[end]);
  if (looks_random(token) || (whole && looks_made(token)))
    found->push_back({from, end, "Authorization header"});
}

}  // namespace

bool in_word(char c) { return is_letter_of(Letters::kAlnum, c) || c == '_'; }

bool begins_here(std::string_view text, std::size_t at) {
  if (at == 0 || !in_word(text[at - 1])) return true;
  bool escaped = at > 1 && text[at - 2] == '\\' && std::string_view("ntr").find(text[at - 1]) != kNone;
  bool encoded = at > 2 && text[at - 3] == '%' && is_letter_of(Letters::kHex, text[at - 2]) &&
                 is_letter_of(Letters::kHex, text[at - 1]);
  return escaped || encoded;
}

void find_private_keys(std::string_view text, Secrets* found) {
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ";
  for (std::size_t at = text.find(kBegin); at != kNone; at = text.find(kBegin, at + 1)) {
    std::size_t title = text.find("-----", at + kBegin.size());
    if (title == kNone || title - at > 80 || text.substr(at, title - at).find("PRIVATE KEY") == kNone)
      continue;
    std::size_t from = title + 5;
    std::string_view block = text.substr(0, from + kLongestWord);
    std::size_t end = block.find(kEnd, from), next = block.find(kBegin, from);
    if (end == kNone || next < end) end = end_of_open_block(text, skip(text, from, "\r\n"));
    found->push_back({from, end, "private key"});
  }
}

void find_forms(std::string_view text, Secrets* found) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const SecretForm& form : secret_forms()) {
      if (form.prefix[0] == text[at]) find_form(text, at, form, found);
    }
    bool of_a_bot = at >= 4 && text.substr(at - 4, 4) == "/bot";  // api.telegram.org/bot123:…
    if (!of_a_bot && !begins_here(text, at)) continue;
    for (const PartedForm& form : parted_forms()) find_parted(text, at, form, found);
  }
}

void find_urls(std::string_view text, Secrets* found) {
  constexpr std::string_view kMark = "://";
  for (std::size_t at = text.find(kMark); at != kNone; at = text.find(kMark, at + 1)) {
    std::size_t scheme = at, from = at + kMark.size();
    while (scheme > 0 && (in_word(text[scheme - 1]) || text[scheme - 1] == '+')) --scheme;
    std::size_t end = end_of_user(text, from);
    if (end == kNone || end == from) continue;
    std::string_view user = text.substr(from, end - from);
    std::size_t begin = begin_of_password(text.substr(scheme, at - scheme), user, from);
    if (begin != kNone && !says_nothing(user)) found->push_back({begin, end, "credentials in a URL"});
  }
  for (std::size_t at = 0; at < text.size(); ++at) find_signature(text, at, found);
}

void find_headers(std::string_view text, Secrets* found) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    char c = static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
    if (c == 'a') find_header(text, at, "authorization", "Authorization header", found);
    if (c == 'p') find_header(text, at, "proxy-authorization", "Authorization header", found);
    if (c == 'x') find_header(text, at, "x-api-key", "key in a header", found);
    if (c == 'x') find_header(text, at, "x-auth-token", "key in a header", found);
    if (c == 'c') find_header(text, at, "cookie", "cookie", found);
    if (c == 's') find_header(text, at, "set-cookie", "cookie", found);
    if (c == 'b') find_bearer(text, at, found);
  }
}

namespace {

using Find = void (*)(std::string_view, Secrets*);

Secrets found_by(std::initializer_list<Find> all, std::string_view text) {
  Secrets found;
  std::vector<std::size_t> order;
  for (Find find : all) find(text, &found);
  for (std::size_t i = 0; i < found.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return found[a].begin != found[b].begin ? found[a].begin < found[b].begin : a < b;
  });
  Secrets whole;
  std::size_t named_by = 0;
  for (std::size_t i : order) {
    if (whole.empty() || found[i].begin >= whole.back().end) {
      whole.push_back(found[i]);
      named_by = i;
      continue;
    }
    whole.back().end = std::max(whole.back().end, found[i].end);
    if (i < named_by) whole.back().kind = found[i].kind, named_by = i;
  }
  return whole;
}

}  // namespace

Secrets find_plain(std::string_view text) {
  return found_by({find_private_keys, find_forms, find_urls, find_headers, find_named, find_pairs, find_calls,
                   find_commands},
                  text);
}

Secrets find_secrets(std::string_view text) {
  return found_by({find_private_keys, find_forms, find_urls, find_headers, find_named, find_pairs, find_calls,
                   find_commands, find_encoded},
                  text);
}

}  // namespace dshang::issue
