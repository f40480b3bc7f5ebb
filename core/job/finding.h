// A finding: what a report says (contract sections 4 and 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dshang::job {

using Rank = std::int32_t;

enum class Severity { kInfo, kWarning, kError, kHang };
enum class Certainty { kJudged, kProven };

const char* text_of(Severity severity);
const char* text_of(Certainty certainty);

// What a group of ranks is doing at the place in question.  Unknown values stay absent.
struct Side {
  std::vector<Rank> ranks;
  std::optional<std::string> op, dtype, reduce_op, phase, module, site, user_site;
  std::optional<std::uint64_t> count;
  std::optional<std::int64_t> root, peer, step;
};

struct Finding {
  std::string type;     // the class of contract section 5
  std::string subject;  // what of its class it speaks of, where a job may have several at the same time
  std::int64_t measure = 0;  // how bad it is, where that is worth to be told again when it grows (a new peak)
  Severity severity = Severity::kHang;
  Certainty certainty = Certainty::kJudged;
  Certainty class_certainty = Certainty::kJudged;
  std::optional<double> resolved;
  std::string summary;
  std::vector<Rank> suspects, waiting;
  std::optional<std::string> comm;
  std::vector<Rank> comm_ranks;
  std::optional<std::uint64_t> call, origin, agreed_until;
  std::vector<Side> sides;
  std::optional<std::int64_t> step;
  std::vector<std::string> evidence, fix;
  std::optional<std::size_t> consequence_of;  // index into the same list
  double at = 0;                              // seconds since job start: when what it speaks of began
  double found = 0;                           // and when it was found; filled by FindingHistory
  bool is_news = false;  // new, or told differently, since the last analysis; filled by FindingHistory
};

// The cause first: severity, then causes before consequences, then time; what has ended is as important as an
// info.
void put_in_order(std::vector<Finding>& findings);

}  // namespace dshang::job
