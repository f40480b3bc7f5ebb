// site-mismatch: calls with equal arguments are paired crosswise between places of the program, or modules,
// or shifted over a stretch.  Nothing stops: NCCL completes the calls and mixes the data.  When a visible
// difference of the same ranks follows, its origin is the crossed call.
//
// What it cannot tell: a module that is run twice in a step from two lines that stand for each other, by
// exact chance in opposite order on two ranks; three stretches without a contradiction are asked for.
#include <algorithm>

#include "core/job/crossed.h"
#include "core/job/shifted.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

std::string place_of(const JobView& view, Rank rank, const job::Call& call) {
  const job::RankRecords& records = view.by_rank(rank)->records();
  std::string text = job::is_made_for_module(records, call) ? "module " + view.names().text(call.module) : "";
  std::string at = call.site ? view.names().place_text(view.names().place_of(call.site)) : "";
  if (text.empty()) return at;
  return at.empty() ? text : text + " (" + at + ")";
}

std::vector<job::Side> sides_at(const JobView& view, const job::CommView& comm, job::Seq k) {
  std::vector<job::Side> sides;
  for (const job::Member& member : comm.members) {
    if (!member.has(k)) continue;
    job::Side side = job::side_of(view, member, member.call(k));
    auto same = std::find_if(sides.begin(), sides.end(), [&](const job::Side& s) {
      return s.site == side.site && s.module == side.module && s.step == side.step;
    });
    if (same == sides.end()) {
      side.ranks = {member.rank};
      sides.push_back(std::move(side));
    } else {
      same->ranks.push_back(member.rank);
    }
  }
  return sides;
}

Finding finding_at(const JobView& view, const job::CommView& comm, job::Seq first,
                   const std::vector<Rank>& suspects) {
  Finding f;
  f.type = "site-mismatch";
  f.severity = Severity::kWarning;
  f.certainty = Certainty::kProven;
  f.class_certainty = Certainty::kProven;
  f.suspects = suspects;
  f.comm = comm.name;
  f.comm_ranks = comm.ranks();
  f.origin = first;
  f.agreed_until = first - 1;
  f.sides = sides_at(view, comm, first);
  std::uint64_t at = 0;
  for (const job::Member& member : comm.members) {
    if (!member.has(first)) continue;
    at = std::max(at, member.call(first).enter_ns);
    bool suspect = std::count(suspects.begin(), suspects.end(), member.rank) > 0;
    if ((!suspect || !f.step) && member.call(first).step != job::kNoStep) f.step = member.call(first).step;
  }
  f.at = view.seconds(at);
  return f;
}

std::string what_is_wrong(job::Seq first) {
  return "What these calls moved since call " + std::to_string(first) + " is wrong: do not use it.";
}

Finding finding_for(const JobView& view, const job::CommView& comm, const job::Shift& shift) {
  Finding f = finding_at(view, comm, shift.first, shift.suspects);
  std::string who =
      job::ranks_text(shift.suspects.empty() ? std::vector<Rank>{shift.told_of} : shift.suspects);
  std::string others = shift.suspects.empty() ? "rank " + std::to_string(shift.witness) : "the others";
  std::string calls = std::to_string(shift.by) + (shift.by == 1 ? " call" : " calls");
  f.summary =
      who + (shift.ahead ? " left out " : " made ") + calls +
      (shift.ahead ? " that " + others + " made" : " more than " + others) +
      (f.step ? " in step " + std::to_string(*f.step) : "") + ": since call " + std::to_string(shift.first) +
      " of " + comm.name +
      " its calls are paired with those from different places, and their data are mixed without an error";
  f.evidence.push_back("calls " + std::to_string(shift.first) + " to " + std::to_string(shift.last) +
                       " are shifted by " + calls + "; the arguments agree, and " +
                       std::to_string(shift.mispaired) + " of them meet a call from another place");
  f.evidence.push_back("before that the calls came from the same places on both sides");
  f.fix = {
      "Make the same number of calls on every rank: a collective under a condition that only some ranks meet "
      "(`if rank == 0`, an empty "
      "batch, a metric that exists on some ranks) must be made by all, in the same order.",
      what_is_wrong(shift.first)};
  return f;
}

Finding finding_for(const JobView& view, const job::CommView& comm, const job::Crossing& crossing) {
  Finding f = finding_at(view, comm, crossing.first, crossing.suspects);
  std::string who =
      job::ranks_text(crossing.suspects.empty() ? std::vector<Rank>{crossing.told_of} : crossing.suspects);
  std::string others = crossing.suspects.empty() ? "rank " + std::to_string(crossing.witness) : "the others";
  std::string mine = place_of(view, crossing.told_of, *crossing.sides[0]),
              theirs = place_of(view, crossing.witness, *crossing.sides[1]);
  std::string call = "call " + std::to_string(crossing.first) + " of " + comm.name;
  f.summary = who + " makes calls in another order than " + others +
              (f.step ? " from step " + std::to_string(*f.step) + " on" : "") + ": " + call +
              " pairs different places (" + mine + " with " + theirs +
              "), so their data are mixed without an error";
  f.evidence.push_back(call + ": " + who + " at " + mine + ", " + others + " at " + theirs +
                       "; the arguments agree, so the call completes with the wrong partner");
  f.evidence.push_back("the same places are paired crosswise in " + std::to_string(crossing.stretches) +
                       (crossing.by_steps ? " steps" : " runs of equal calls") + " so far, last at call " +
                       std::to_string(crossing.last));
  f.fix = {
      "Make these calls in the same order on every rank: sort what is walked through (the keys of a dict, a "
      "set) before it is reduced.",
      "Or reduce the values together, stacked into one tensor in a fixed order. " +
          what_is_wrong(crossing.first)};
  return f;
}

// A visible difference of the same ranks follows from it.
void add(Work& work, Finding f, job::Seq last) {
  for (Finding& visible : work.findings) {
    bool follows = visible.comm == f.comm && visible.call && *visible.call > last && !f.suspects.empty() &&
                   visible.suspects == f.suspects;
    if (!follows || visible.severity != Severity::kHang) continue;
    visible.origin = f.origin;
    visible.agreed_until = f.agreed_until;
    visible.consequence_of = work.findings.size();
    visible.evidence.push_back("before that calls of the same ranks were paired wrongly, from call " +
                               std::to_string(*f.origin) + " on");
  }
  work.findings.push_back(std::move(f));
}

void run(Work& work) {
  for (const job::CommView& comm : work.view.comms) {
    if (std::optional<job::Crossing> crossing = job::find_crossing(work.view, comm)) {
      add(work, finding_for(work.view, comm, *crossing), crossing->last);
    } else if (std::optional<job::Shift> shift = job::find_shift(work.view, comm)) {
      // A difference that stands in the way of the shift was explained from where it began.
      bool told = std::any_of(work.findings.begin(), work.findings.end(), [&](const Finding& f) {
        return f.comm == comm.name && f.origin && *f.origin <= shift->first && f.severity == Severity::kHang;
      });
      if (!told) add(work, finding_for(work.view, comm, *shift), shift->last);
    }
  }
}

}  // namespace

DSHANG_DETECTOR(20, "site-mismatch", run);

}  // namespace dshang::detect
