// Where any of some hundred words stand in a text: everything else of a log is passed over without a look.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace dshang::explain {

inline constexpr std::size_t kShortestLiteral = 4;

// The longest run of characters that every match of the regular expression contains; alternatives, groups and
// classes end a run.
std::string required_literal(std::string_view regex);

// Wu and Manber's search for several words (A fast algorithm for multi-pattern searching, TR-94-17,
// University of Arizona, 1994), with pairs of bytes, on the four rarest bytes in a row of each word.
class Literals {
 public:
  // Every word has at least kShortestLiteral bytes.
  explicit Literals(std::vector<std::string> words);

  const std::string& word(std::size_t id) const { return words_[id]; }

  // Calls found(offset, id) for each place of each word, in the order of their rarest bytes, until it returns
  // false.
  template <class Found>
  void search(std::string_view text, Found found) const {
    const char* data = text.data();
    for (std::size_t end = kShortestLiteral; end <= text.size();) {
      std::uint16_t pair;
      std::memcpy(&pair, data + end - 2, 2);
      if (std::size_t shift = shifts_[pair]) {
        end += shift;
        continue;
      }
      for (std::uint16_t at = first_[slot(data + end - 4)]; at; at = anchors_[at].next) {
        const Anchor& anchor = anchors_[at];
        const std::string& word = words_[anchor.word];
        if (end - 4 < anchor.offset) continue;
        std::size_t begin = end - 4 - anchor.offset;
        if (begin + word.size() <= text.size() && !std::memcmp(data + begin, word.data(), word.size()) &&
            !found(begin, anchor.word))
          return;
      }
      ++end;
    }
  }

 private:
  struct Anchor {
    std::uint16_t word = 0, next = 0;
    std::uint32_t offset = 0;  // in the word
  };
  static constexpr int kSlotBits = 13;
  static std::size_t slot(const char* bytes) {
    std::uint32_t four;
    std::memcpy(&four, bytes, 4);
    return (four * 0x9e3779b1u) >> (32 - kSlotBits);
  }

  std::vector<std::string> words_;
  std::vector<std::uint8_t> shifts_;
  std::vector<std::uint16_t> first_;
  std::vector<Anchor> anchors_;  // the first is none
};

}  // namespace dshang::explain
