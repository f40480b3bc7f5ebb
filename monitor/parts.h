// The parts of what a monitor does at a round: what goes wrong in one is told once, and does not keep the
// others from going on.
#pragma once

#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dshang::monitor {

class Parts {
 public:
  // Whether it got to its end.  `name` is for the reader: "the analysis".
  template <typename Part>
  bool run(const char* name, Part part) {
    try {
      part();
      return true;
    } catch (const std::exception& error) {
      note(name, error.what());
      return false;
    }
  }

  // Every failure the first time that it is seen: "the analysis failed: why".
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }

 private:
  static constexpr std::size_t kMostTold = 16;

  void note(const char* name, const char* why) {
    if (told_.size() == kMostTold) return;
    std::string text = std::string(name) + " failed: " + why;
    if (told_.insert(text).second) news_.push_back(std::move(text));
  }

  std::set<std::string> told_;
  std::vector<std::string> news_;
};

}  // namespace dshang::monitor
