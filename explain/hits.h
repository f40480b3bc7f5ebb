// What an entry's judge says of a log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/observed.h"

namespace dshang::explain {

class Hits {
 public:
  struct Hit {
    Place place;
    std::set<Speaker> speakers;
    std::uint64_t count = 1;
    std::string summary, text;  // summary "": the entry's
    std::string fix;            // before the entry's own
    bool cause = false;         // even where the entry is mostly a consequence
  };
  void add(Hit hit) { hits_.push_back(std::move(hit)); }
  void add(const Sighting& sighting, std::string summary = "") {
    hits_.push_back(
        {sighting.first, sighting.speakers, sighting.count, std::move(summary), sighting.text, "", false});
  }
  const std::vector<Hit>& all() const { return hits_; }

 private:
  std::vector<Hit> hits_;
};

// "rank 3": whom torch's monitored barrier missed because its connection was closed; "" nobody.
std::string gone_at_barrier(const Observed& seen);

}  // namespace dshang::explain
