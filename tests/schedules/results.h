// Results of many jobs, and their tables.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace dshang::schedules {

// One job, in one line of text: what a worker tells its parent.
struct Result {
  bool healthy = true;
  std::uint64_t seed = 0;
  std::string shape, hosts, type, how, told;  // type: injected; told: "nothing" or a class
  std::string otherwise = "-";                // said at some moment, and not right
  bool sites = false, modules = false, steps = false, marks = true, right = false, undecidable = false;
  int suspects = -1, origin = -1;  // 1 right, 0 wrong, -1 not asked
  bool wrong_in_tie = false, agreed_too_far = false;
};

std::string line_of(const Result& result);
bool read_line(const std::string& line, Result& result);

struct Share {
  int right = 0, all = 0;
  void add(bool is_right) { right += is_right, ++all; }
  double percent() const { return all ? 100.0 * right / all : 100; }
};

struct Totals {
  int healthy = 0, false_alarms = 0, missed = 0, nothing_to_see = 0, undecidable = 0, agreed_too_far = 0,
      wrong_in_tie = 0;
  Share classes, suspects, origins;
};

Totals print_tables(std::ostream& out, const std::vector<Result>& results);

}  // namespace dshang::schedules
