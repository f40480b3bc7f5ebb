#include "core/job/finding.h"

namespace dshang::job {

const char* text_of(Severity severity) {
  switch (severity) {
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
    case Severity::kHang: break;
  }
  return "hang";
}

const char* text_of(Certainty certainty) { return certainty == Certainty::kProven ? "proven" : "judged"; }

}  // namespace dshang::job
