// A line of a log: who printed it, and what.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace dshang::explain {

// Whoever printed a line, as far as the line or the file's name tells it.
struct Speaker {
  std::string node;    // "" unknown
  int rank = -1;       // -1 unknown
  bool local = false;  // `rank` counts within the node

  auto operator<=>(const Speaker&) const = default;
};

struct Place {
  std::uint32_t file = 0;
  std::uint64_t line = 0;  // from 1

  auto operator<=>(const Place&) const = default;
};

struct Line {
  Place place;
  Speaker who;
  std::string_view text;  // without prefixes and colours, valid during the call
};

// Takes the prefixes of launchers off `text` and notes what they tell: torch's [rank3]:, torchrun's
// [default3]:, mpirun's [1,3]<stdout>:, srun's "3: ", pdsh's "worker-1: ", Ray's (Name pid=7, ip=10.0.0.1),
// and times before them.
std::string_view without_prefixes(std::string_view text, Speaker* who);

// Without terminal control sequences; `scratch` holds the result where there were some.
std::string_view without_colours(std::string_view text, std::string* scratch);

// Reads decimal digits at `*at` and moves it behind them; -1 where there are none or too many.
long read_number(std::string_view text, std::size_t* at);

}  // namespace dshang::explain
