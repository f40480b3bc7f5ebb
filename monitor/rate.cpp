#include "monitor/rate.h"

#include <algorithm>

namespace dshang::monitor {

double steps_per_second(const job::RankRecords& records, std::uint64_t now_ns) {
  constexpr std::size_t kSteps = 20;
  std::uint64_t newest = 0, oldest = 0;
  std::size_t seen = 0;
  for (std::uint64_t n = records.visits.end(); n-- > records.visits.first() && seen <= kSteps;) {
    const job::Visit& visit = records.visits.at(n);
    if (visit.torn || visit.kind != flight::VisitKind::kStep) continue;
    if (seen++ == 0) newest = visit.time_ns;
    oldest = visit.time_ns;
  }
  if (seen < 2 || newest <= oldest) return -1;
  const double steps = static_cast<double>(seen - 1), took = static_cast<double>(newest - oldest) / 1e9;
  const double lasts = now_ns > newest ? static_cast<double>(now_ns - newest) / 1e9 : 0;
  return steps / (took + std::max(0.0, lasts - took / steps));
}

}  // namespace dshang::monitor
