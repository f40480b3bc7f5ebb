#include "program.h"

#include <algorithm>

namespace dshang::schedules {

const char* text_of(Op op) {
  static constexpr const char* kNames[] = {"all_gather", "all_reduce", "reduce_scatter", "broadcast",
                                           "reduce",     "all_to_all", "send",           "recv"};
  return kNames[static_cast<std::size_t>(op)];
}

const char* text_of(Hosts hosts) {
  static constexpr const char* kNames[] = {"inside", "sync", "sync-some", "ahead"};
  return kNames[static_cast<std::size_t>(hosts)];
}

std::size_t Job::position(int comm, int rank) const {
  const std::vector<int>& ranks = comms[static_cast<std::size_t>(comm)].ranks;
  return static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

std::size_t end_of_region(const Program& program, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < program.size(); ++i) {
    depth += program[i].kind == Kind::kBegin;
    depth -= program[i].kind == Kind::kEnd;
    if (depth == 0) return i + 1;
  }
  return program.size();
}

}  // namespace dshang::schedules
