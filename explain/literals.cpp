#include "explain/literals.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace dshang::explain {
namespace {

// Behind the bracket that closes the one at `at`.
std::size_t behind(std::string_view regex, std::size_t at) {
  char open = regex[at], close = open == '(' ? ')' : open == '[' ? ']' : '}';
  int depth = 0;
  for (std::size_t i = at; i < regex.size(); ++i) {
    if (regex[i] == '\\') {
      ++i;
    } else if (open == '(' && regex[i] == '[') {
      i = behind(regex, i) - 1;
    } else if (regex[i] == open && (open != '[' || i == at)) {
      ++depth;
    } else if (regex[i] == close && --depth == 0) {
      return i + 1;
    }
  }
  return regex.size();
}

// How often a byte stands in logs, roughly.
int frequency(char c) {
  static const std::string_view kCommon = " etaoinsrhl";
  unsigned char byte = static_cast<unsigned char>(c);
  if (kCommon.find(c) != std::string_view::npos) return 6;
  if (std::islower(byte)) return 4;
  if (std::isdigit(byte)) return 4;
  return std::isupper(byte) ? 2 : 1;
}

std::size_t rarest(std::string_view word) {
  std::size_t best = 0;
  int least = 1 << 20;
  for (std::size_t at = 0; at + kShortestLiteral <= word.size(); ++at) {
    int sum = 0;
    for (std::size_t i = 0; i < kShortestLiteral; ++i) sum += frequency(word[at + i]);
    if (sum < least) {
      least = sum;
      best = at;
    }
  }
  return best;
}

}  // namespace

std::string required_literal(std::string_view regex) {
  std::string best, run;
  auto end_run = [&] {
    if (run.size() > best.size()) best = run;
    run.clear();
  };
  for (std::size_t i = 0; i < regex.size();) {
    char c = regex[i];
    if (c == '|') return "";
    bool escaped = c == '\\' && i + 1 < regex.size();
    if (c == '(' || c == '[' || c == '{') {
      end_run();
      i = behind(regex, i);
      continue;
    }
    bool plain = escaped ? !std::isalnum(static_cast<unsigned char>(regex[i + 1]))
                         : std::string_view(".^$?*+)").find(c) == std::string_view::npos;
    std::size_t next = i + (escaped ? 2 : 1);
    bool optional =
        next < regex.size() && std::string_view("?*{").find(regex[next]) != std::string_view::npos;
    if (!plain || optional) {
      end_run();
    } else {
      run += regex[next - 1];
      if (next < regex.size() && regex[next] == '+') end_run();
    }
    i = next;
  }
  end_run();
  return best;
}

Literals::Literals(std::vector<std::string> words)
    : words_(std::move(words)),
      shifts_(1 << 16, kShortestLiteral - 1),
      first_(std::size_t{1} << kSlotBits, 0),
      anchors_(1) {
  for (std::size_t id = 0; id < words_.size(); ++id) {
    const std::string& word = words_[id];
    if (word.size() < kShortestLiteral) throw std::logic_error("too short to be sought: " + word);
    std::size_t offset = rarest(word);
    for (std::size_t end = 2; end <= kShortestLiteral; ++end) {
      std::uint16_t pair;
      std::memcpy(&pair, word.data() + offset + end - 2, 2);
      shifts_[pair] =
          std::min<std::uint8_t>(shifts_[pair], static_cast<std::uint8_t>(kShortestLiteral - end));
    }
    std::uint16_t& head = first_[slot(word.data() + offset)];
    anchors_.push_back({static_cast<std::uint16_t>(id), head, static_cast<std::uint32_t>(offset)});
    head = static_cast<std::uint16_t>(anchors_.size() - 1);
  }
}

}  // namespace dshang::explain
