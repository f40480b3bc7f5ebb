// Secrets in texts that are written in another way: in base64, as --deepspeed_config of a launch line may be,
// with escapes of JSON or of addresses; and these in each other.
#include "doctor/base64.h"
#include "issue/find_secrets.h"
#include "issue/unescape.h"

namespace dshang::issue {
namespace {

constexpr std::size_t kShortestText = 16;  // letters
constexpr std::size_t kLongestText = 1 << 20;
constexpr int kDeepest = 3;

Secrets find_within(std::string_view text, int depth);

bool holds_a_secret(std::string_view letters, int depth) {
  if (letters.size() < kShortestText || letters.size() > kLongestText) return false;
  std::string text = doctor::from_base64(letters);
  return doctor::readable_text(text) && (!find_plain(text).empty() || !find_within(text, depth + 1).empty());
}

void find_in_base64(std::string_view text, int depth, Secrets* found) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::size_t end = at;
    while (end < text.size() && doctor::in_base64(text[end])) ++end;
    if (holds_a_secret(text.substr(at, end - at), depth))
      found->push_back({at, end, "secret in a base64 text"});
    at = end;
  }
}

void find_in_escapes(std::string_view text, int depth, Secrets* found) {
  Unescaped plain = unescape(text);
  if (!plain.changed) return;
  Secrets all = find_plain(plain.text);
  for (const Secret& one : find_within(plain.text, depth + 1)) all.push_back(one);
  for (const Secret& one : all) found->push_back({plain.at[one.begin], plain.at[one.end], one.kind});
}

Secrets find_within(std::string_view text, int depth) {
  Secrets found;
  if (depth > kDeepest) return found;
  find_in_base64(text, depth, &found);
  find_in_escapes(text, depth, &found);
  return found;
}

}  // namespace

void find_encoded(std::string_view text, Secrets* found) {
  for (Secret& one : find_within(text, 1)) found->push_back(std::move(one));
}

}  // namespace dshang::issue
