// Texts in base64 that hold a secret: --deepspeed_config of a launch line may be a whole configuration.
#include "doctor/base64.h"
#include "issue/find_secrets.h"

namespace dshang::issue {
namespace {

constexpr std::size_t kShortestText = 24;  // letters
constexpr std::size_t kLongestText = 1 << 20;

bool holds_a_secret(std::string_view letters) {
  if (letters.size() < kShortestText || letters.size() > kLongestText) return false;
  std::string text = doctor::from_base64(letters);
  return doctor::readable_text(text) && !find_plain(text).empty();
}

}  // namespace

void find_encoded(std::string_view text, Secrets* found) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::size_t end = at;
    while (end < text.size() && doctor::in_base64(text[end])) ++end;
    if (holds_a_secret(text.substr(at, end - at))) found->push_back({at, end, "secret in a base64 text"});
    at = end;
  }
}

}  // namespace dshang::issue
