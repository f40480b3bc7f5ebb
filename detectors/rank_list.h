// Some ranks with what is to be said of each; beyond a few they are counted.
#pragma once

#include <string>
#include <vector>

#include "core/job/finding.h"

namespace dshang::detect {

class RankList {
 public:
  void add(job::Rank rank, const std::string& what) {
    if (told_++ < kMost) text_ += (text_.empty() ? "rank " : ", rank ") + std::to_string(rank) + " " + what;
  }
  bool empty() const { return told_ == 0; }
  std::string text() const {  // "rank 0 20 GiB, rank 2 21 GiB and 5 more"
    return text_ + (told_ > kMost ? " and " + std::to_string(told_ - kMost) + " more" : "");
  }

 private:
  static constexpr std::size_t kMost = 4;
  std::size_t told_ = 0;
  std::string text_;
};

// The same as lines of evidence, one a rank.
class RankLines {
 public:
  explicit RankLines(std::vector<std::string>& evidence) : evidence_(evidence) {}
  RankLines(const RankLines&) = delete;
  RankLines& operator=(const RankLines&) = delete;
  ~RankLines() {
    if (count_ > kMost) evidence_.push_back("and " + std::to_string(count_ - kMost) + " more ranks");
  }
  bool next() { return ++count_ <= kMost; }  // whether this one is told

 private:
  static constexpr std::size_t kMost = 8;
  std::vector<std::string>& evidence_;
  std::size_t count_ = 0;
};

}  // namespace dshang::detect
