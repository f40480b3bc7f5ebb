// What a training loop reports: losses, gradient norms, loss scales, steps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "explain/line.h"

namespace dshang::explain {

class Numbers {
 public:
  // `at`: where the word stands in the line.
  void take_loss(const Line& line, std::size_t at);
  void take_grad_norm(const Line& line, std::size_t at);
  void take_overflow(const Line& line, std::size_t at);
  void take_step(const Line& line, std::size_t at);
  void take_bar(const Line& line, std::size_t at);  // tqdm: 12/100 [00:01<00:10,  9.2it/s]

  struct Event {
    Place place;
    Speaker who;
    std::string text;
    std::uint64_t before = 0;  // finite values of the kind that the rank reported before it
  };
  struct Spike : Event {
    double value = 0, median = 0;
  };
  // A training loop's bar: seconds of its first step, and of each of those behind it.
  struct Bar : Event {
    long all = 0, last = 0;  // steps
    double first = 0, elapsed = 0;
    double each() const { return last > 1 ? (elapsed - first) / static_cast<double>(last - 1) : 0; }
  };
  struct Shrinking : Event {
    std::uint64_t times = 0;
    double from = 0, to = 0;  // attempted scales; 0 unknown
  };

  // The largest step that was reported, or the number of losses where there are no steps.
  std::uint64_t progress() const { return step_ ? step_ : losses_; }
  std::uint64_t losses() const { return losses_; }
  std::uint64_t overflows() const { return overflows_; }
  std::optional<double> last_loss() const { return last_loss_; }

  std::optional<Event> nan_first, nan_later, nan_in_evaluation, nan_gradients;
  std::optional<Spike> spike;
  std::optional<Shrinking> shrinking;
  std::optional<Bar> bar;

 private:
  struct Of {  // a rank
    std::uint64_t losses = 0, finite = 0, norms = 0, nan_norms_in_a_row = 0;
    std::vector<float> recent;  // gradient norms, the newest kRecent
    float least = 0;
    std::uint64_t overflows = 0, falls = 0;
    double fell_from = 0, attempted = 0;
  };
  void note_bar(const Line& line, long step, long all, double elapsed);
  void note_overflow(const Line& line, Of& of, double attempted, bool falls);

  std::map<Speaker, Of> of_;
  std::uint64_t losses_ = 0, step_ = 0, overflows_ = 0;
  std::optional<double> last_loss_;
};

}  // namespace dshang::explain
