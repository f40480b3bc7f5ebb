// What the probe noted of losses, norms, loss scales and batches (probe/dshang_probe/numbers.py and others):
// facts whose value is "<word>=<value> <word>=<value> ...".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "detectors/known_facts.h"

namespace dshang::detect {

// One such fact of one rank.  A word that is missing, or noted as unknown ("-", "None"), is "".
class NumberFact {
 public:
  NumberFact() = default;
  NumberFact(const JobView& view, const job::RankView& rank, std::string_view key);

  explicit operator bool() const { return time_ns_ != 0; }
  std::uint64_t time_ns() const { return time_ns_; }
  std::string text(std::string_view word) const;
  std::optional<double> number(std::string_view word) const;  // nan and inf included
  std::optional<std::int64_t> whole(std::string_view word) const;

 private:
  std::string text_;
  std::uint64_t time_ns_ = 0;
};

// Whether the rank trains in fp16: its parameters, or autocast in training.
bool in_half_precision(const NumberFact& fact);

}  // namespace dshang::detect
