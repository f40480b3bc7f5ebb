#include "detectors/went_on.h"

#include <algorithm>

namespace dshang::detect {

std::uint64_t went_on_at(const job::RankView& rank, std::uint64_t failed_ns) {
  const job::RankRecords& records = rank.records();
  std::uint64_t at = 0;
  auto earlier = [&](std::uint64_t ns) { at = at == 0 ? ns : std::min(at, ns); };
  for (std::uint64_t n = records.calls.end(); n-- > records.calls.first();) {
    const job::Call& call = records.calls.at(n);
    if (call.torn) continue;
    if (call.enter_ns <= failed_ns) break;
    if (!job::is_outstanding(call) && !(call.flags & flight::kCallFailed)) earlier(call.enter_ns);
  }
  for (std::uint64_t n = records.visits.end(); n-- > records.visits.first();) {
    const job::Visit& visit = records.visits.at(n);
    if (visit.torn || visit.kind != flight::VisitKind::kStep) continue;
    if (visit.time_ns <= failed_ns) break;
    earlier(visit.time_ns);
  }
  if (rank.alive()) return at;
  const job::Death& death = *rank.journal().death;
  bool normal = death.known != job::EndingKnown::kNo && !death.by_signal && death.code == 0;
  if (!normal) return 0;
  earlier(death.time_ns);
  return at;
}

bool uncaught_since(const JobView& view, const job::RankView& rank, std::uint64_t failed_ns) {
  const auto& facts = rank.records().facts;
  for (std::uint64_t n = facts.end(); n-- > facts.first();) {
    const job::FactRecord& fact = facts.at(n);
    if (fact.time_ns >= failed_ns && view.names().text(fact.key) == "exception.uncaught") return true;
  }
  return false;
}

}  // namespace dshang::detect
