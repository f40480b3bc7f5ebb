#include "core/job/long_text.h"

#include <charconv>
#include <string_view>

namespace dshang::job {
namespace {

constexpr std::string_view kCut = "cut ", kPieces = "pieces ";
constexpr int kMostPieces = 64;

// 0: it is no text in pieces.
int pieces_of(std::string_view text) {
  if (!text.starts_with(kPieces)) return 0;
  text.remove_prefix(kPieces.size());
  int count = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && count > 0 && count <= kMostPieces ? count : 0;
}

}  // namespace

std::string whole_text(const std::string& key, const FactLookup& fact) {
  const std::string& head = fact(key);
  if (head.starts_with(kCut)) return "";
  int pieces = pieces_of(head);
  if (pieces == 0) return head;
  std::string text;
  for (int n = 1; n <= pieces; ++n) {
    const std::string& piece = fact(key + "/" + std::to_string(n));
    if (piece.empty()) return "";
    text += piece;
  }
  return text;
}

std::string cut_text(const std::string& key, const FactLookup& fact) {
  const std::string& head = fact(key);
  return head.starts_with(kCut) ? head.substr(kCut.size()) : "";
}

}  // namespace dshang::job
