#include "core/job/finding.h"

#include <algorithm>

namespace dshang::job {

const char* text_of(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
    case Severity::kHang:
      break;
  }
  return "hang";
}

const char* text_of(Certainty certainty) { return certainty == Certainty::kProven ? "proven" : "judged"; }

void put_in_order(std::vector<Finding>& findings) {
  std::vector<std::size_t> order(findings.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  auto rank_of = [&](std::size_t i) {
    const Finding& f = findings[i];
    int severity = f.consequence_of || f.resolved ? 0 : static_cast<int>(f.severity);
    for (const Finding& other : findings) {
      // A cause is as important as what follows from it.
      if (other.consequence_of == i) severity = std::max(severity, static_cast<int>(other.severity));
    }
    return severity;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    int ra = rank_of(a), rb = rank_of(b);
    return ra != rb ? ra > rb : findings[a].at < findings[b].at;
  });
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<Finding> sorted;
  for (std::size_t i : order) sorted.push_back(std::move(findings[i]));
  for (Finding& f : sorted) {
    if (f.consequence_of) f.consequence_of = place[*f.consequence_of];
  }
  findings = std::move(sorted);
}

}  // namespace dshang::job
