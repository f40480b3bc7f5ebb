// site-mismatch: calls with equal arguments are paired crosswise between places of the program, or modules.  Nothing
// stops: NCCL completes the calls and mixes the data.  When a visible difference of the same ranks follows, its origin is
// the crossed call.
//
// What it cannot tell: a module that is run twice in a step from two lines that stand for each other, by exact chance in
// opposite order on two ranks; three stretches without a contradiction are asked for.
#include <algorithm>

#include "core/job/crossed.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

std::string place_of(const JobView& view, const job::Call& call) {
  std::string text = call.module ? "module " + view.names().text(call.module) : "";
  std::string at = call.site ? view.names().place_text(view.names().place_of(call.site)) : "";
  if (text.empty()) return at;
  return at.empty() ? text : text + " (" + at + ")";
}

std::vector<job::Side> sides_at(const JobView& view, const job::CommView& comm, job::Seq k) {
  std::vector<job::Side> sides;
  for (const job::Member& member : comm.members) {
    if (!member.has(k)) continue;
    job::Side side = job::side_of(view, member, member.call(k));
    auto same = std::find_if(sides.begin(), sides.end(), [&](const job::Side& s) { return s.site == side.site && s.module == side.module && s.step == side.step; });
    if (same == sides.end()) {
      side.ranks = {member.rank};
      sides.push_back(std::move(side));
    } else {
      same->ranks.push_back(member.rank);
    }
  }
  return sides;
}

Finding finding_for(const JobView& view, const job::CommView& comm, const job::Crossing& crossing) {
  Finding f;
  f.type = "site-mismatch";
  f.severity = Severity::kWarning;
  f.certainty = Certainty::kProven;
  f.class_certainty = Certainty::kProven;
  f.suspects = crossing.suspects;
  f.comm = comm.name;
  f.comm_ranks = comm.ranks();
  f.origin = crossing.first;
  f.agreed_until = crossing.first - 1;
  f.step = crossing.step;
  f.sides = sides_at(view, comm, crossing.first);
  std::string who = job::ranks_text(crossing.suspects.empty() ? std::vector<Rank>{crossing.told_of} : crossing.suspects);
  std::string others = crossing.suspects.empty() ? "rank " + std::to_string(crossing.witness) : "the others";
  std::string mine = place_of(view, *crossing.sides[0]), theirs = place_of(view, *crossing.sides[1]);
  std::string call = "call " + std::to_string(crossing.first) + " of " + comm.name;
  f.summary = who + " makes calls in another order than " + others + (f.step ? " from step " + std::to_string(*f.step) + " on" : "") + ": " + call +
              " pairs different places (" + mine + " with " + theirs + "), so their data are mixed without an error";
  f.evidence.push_back(call + ": " + who + " at " + mine + ", " + others + " at " + theirs +
                       "; the arguments agree, so the call completes with the wrong partner");
  f.evidence.push_back("the same places are paired crosswise in " + std::to_string(crossing.stretches) +
                       (crossing.by_steps ? " steps" : " runs of equal calls") + " so far, last at call " + std::to_string(crossing.last));
  f.fix = {"Make these calls in the same order on every rank: sort what is walked through (the keys of a dict, a set) before it is reduced.",
           "Or reduce the values together, stacked into one tensor in a fixed order. What was reduced since call " +
               std::to_string(crossing.first) + " is wrong: do not use it."};
  std::uint64_t at = 0;
  for (const job::Member& member : comm.members) {
    if (member.has(crossing.first)) at = std::max(at, member.call(crossing.first).enter_ns);
  }
  f.at = view.seconds(at);
  return f;
}

void run(Work& work) {
  for (const job::CommView& comm : work.view.comms) {
    std::optional<job::Crossing> crossing = job::find_crossing(work.view, comm);
    if (!crossing) continue;
    Finding f = finding_for(work.view, comm, *crossing);
    for (Finding& visible : work.findings) {
      bool follows = visible.comm == f.comm && visible.call && *visible.call > crossing->last && !f.suspects.empty() && visible.suspects == f.suspects;
      if (!follows || visible.severity != Severity::kHang) continue;
      visible.origin = f.origin;
      visible.agreed_until = f.agreed_until;
      visible.consequence_of = work.findings.size();
      visible.evidence.push_back("before that the same ranks made calls crosswise, from call " + std::to_string(crossing->first) + " on");
    }
    work.findings.push_back(std::move(f));
  }
}

}  // namespace

DSHANG_DETECTOR(20, "site-mismatch", run);

}  // namespace dshang::detect
