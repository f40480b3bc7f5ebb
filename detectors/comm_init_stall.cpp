// comm-init-stall: a communicator that only some ranks are creating or splitting.  (Ranks that wait for each
// other before any communicator: rendezvous.cpp.)
//
// Who is missing follows from the size (a communicator of all ranks), from the parent of a split, or from a
// member whose own creation failed.  Of other communicators the members that have not come are not recorded:
// they are known only where an earlier communicator had those who have come, two at least, at the same
// positions: of two groups of a mesh, one rank is in both.  Nothing rests on the absence of ranks that were
// not heard from.
#include <algorithm>
#include <map>
#include <set>

#include "detectors/progress.h"
#include "detectors/rank_list.h"
#include "detectors/whereabouts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using flight::CommOrigin;
using flight::CommState;
using job::Comm;
using job::RankView;

constexpr double kPatience =
    2;  // stall thresholds for a creation in which nobody is missing: large jobs take their time
constexpr double kAfterFailure = 2;  // seconds in which NCCL may tell the others that one has failed

struct Creator {
  std::size_t rank;  // index into JobView::ranks
  const Comm* comm;
};

// One creation as the ranks see it: those with the same unique id, or the same split of the same parent.
struct Creation {
  std::vector<Creator> inside, failed, through;
  const Comm& any() const { return *inside[0].comm; }
  bool is_split() const { return any().origin == CommOrigin::kSplit; }
  std::uint64_t latest_ns() const {
    std::uint64_t latest = 0;
    for (const Creator& one : inside) latest = std::max(latest, one.comm->begin_ns);
    for (const Creator& one : failed) latest = std::max(latest, one.comm->end_ns);
    return latest;
  }
  std::uint64_t earliest_ns() const {
    std::uint64_t earliest = inside[0].comm->begin_ns;
    for (const Creator& one : inside) earliest = std::min(earliest, one.comm->begin_ns);
    return earliest;
  }
  bool has(std::size_t rank) const {
    auto is = [&](const Creator& one) { return one.rank == rank; };
    return std::any_of(inside.begin(), inside.end(), is) || std::any_of(failed.begin(), failed.end(), is) ||
           std::any_of(through.begin(), through.end(), is);
  }
};

// Splits and shrinks without regard to the colour: every member of the parent has to call.
std::pair<std::uint64_t, std::uint64_t> key_of(const Comm& comm) {
  bool derived = comm.origin == CommOrigin::kSplit || comm.origin == CommOrigin::kShrink;
  return derived ? std::make_pair(comm.parent,
                                  std::uint64_t{comm.ordinal} << 8 | static_cast<std::uint64_t>(comm.origin))
                 : std::make_pair(comm.id, std::uint64_t{0});
}

// Inside now, or until its process was ended long after it had come.
bool waited_in(const JobView& view, const RankView& rank, const Comm& comm) {
  return rank.alive() || seconds_between(comm.begin_ns, rank.journal().death->time_ns) >=
                             std::min(view.stall_after(), 2 * kAfterFailure);
}

std::vector<Creation> unfinished(const JobView& view) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Creation> by_key;
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    for (const Comm& comm : view.ranks[r].records().comms) {
      if (comm.state == CommState::kNone || comm.origin == CommOrigin::kInitAll) continue;
      Creation& creation = by_key[key_of(comm)];
      bool is_inside = comm.state == CommState::kCreating;
      if (is_inside && !waited_in(view, view.ranks[r], comm)) continue;  // it ended on the way: it is missing
      auto& list = is_inside                          ? creation.inside
                   : comm.state == CommState::kFailed ? creation.failed
                                                      : creation.through;
      list.push_back({r, &comm});
    }
  }
  std::vector<Creation> found;
  for (auto& [key, creation] : by_key) {
    std::vector<Creator> failures = std::move(creation.failed);
    creation.failed.clear();
    // One that tried again has come after all.
    for (const Creator& one : failures) {
      if (!creation.has(one.rank)) creation.failed.push_back(one);
    }
    if (!creation.inside.empty()) found.push_back(std::move(creation));
  }
  std::sort(found.begin(), found.end(),
            [](const Creation& a, const Creation& b) { return a.earliest_ns() < b.earliest_ns(); });
  return found;
}

std::vector<std::size_t> processes_of(const job::CommView& comm) {
  std::vector<std::size_t> processes;
  for (const job::Member& member : comm.members) processes.push_back(member.process);
  return processes;
}

// The members of the earlier communicators of this size that had those who have come at their positions;
// absent where there is none, or they are not the same.
std::optional<std::vector<std::size_t>> members_as_before(const JobView& view, const Creation& creation) {
  if (creation.inside.size() < 2) return std::nullopt;
  std::optional<std::vector<std::size_t>> members;
  for (const job::CommView& comm : view.comms) {
    if (comm.size != creation.any().size || !comm.complete() || comm.id == creation.any().id) continue;
    bool fits = std::all_of(creation.inside.begin(), creation.inside.end(), [&](const Creator& one) {
      const job::Member* member = comm.member_of(one.rank);
      return member && member->position == one.comm->rank;
    });
    if (!fits) continue;
    std::vector<std::size_t> processes = processes_of(comm);
    if (members && *members != processes) return std::nullopt;
    members = std::move(processes);
  }
  return members;
}

// Ranks that have to take part and have not called, as indices; absent where it is not known who they are or
// one of them was not heard from.
std::optional<std::vector<std::size_t>> not_there(const JobView& view, const Creation& creation) {
  std::vector<std::size_t> members;
  if (creation.is_split()) {
    const job::CommView* parent = view.by_id(creation.any().parent);
    if (!parent || !parent->complete()) return std::nullopt;
    members = processes_of(*parent);
  } else if (creation.any().origin == CommOrigin::kInit && creation.any().size == view.world_size) {
    if (static_cast<std::int32_t>(view.ranks.size()) != view.world_size) return std::nullopt;
    for (std::size_t r = 0; r < view.ranks.size(); ++r) members.push_back(r);
  } else {
    std::optional<std::vector<std::size_t>> before = members_as_before(view, creation);
    if (!before) return std::nullopt;
    members = std::move(*before);
  }
  std::vector<std::size_t> missing;
  for (std::size_t rank : members) {
    if (!creation.has(rank)) missing.push_back(rank);
  }
  return missing;
}

std::string name_of(const JobView& view, const Creation& creation) {
  const Comm& comm = creation.any();
  if (creation.is_split()) {
    const job::CommView* parent = view.by_id(comm.parent);
    return "split " + std::to_string(comm.ordinal) + " of " +
           (parent ? parent->name : std::string("its parent"));
  }
  if (const job::CommView* known = view.by_id(comm.id)) return "communicator " + known->name;
  return "a communicator of " + std::to_string(comm.size);
}

const char* function_of(const Creation& creation) {
  switch (creation.any().origin) {
    case CommOrigin::kSplit:
      return "ncclCommSplit";
    case CommOrigin::kShrink:
      return "ncclCommShrink";
    case CommOrigin::kGrow:
      return "ncclCommGrow";
    default:
      return "ncclCommInitRank";
  }
}

std::vector<Rank> ranks_of(const JobView& view, const std::vector<Creator>& creators) {
  std::vector<Rank> ranks;
  for (const Creator& one : creators) ranks.push_back(view.ranks[one.rank].rank);
  return ranks;
}

void add_sides(const JobView& view, const Creation& creation, Finding& f) {
  for (const Creator& one : creation.inside) {
    job::Side side;
    side.op = creation.is_split() ? "split" : "comm_init_rank";
    if (one.comm->site) {
      const job::Site& site = view.names().site(one.comm->site);
      if (site.place) side.site = view.names().place_text(site.place);
      if (site.user_place) side.user_site = view.names().place_text(site.user_place);
    }
    std::int64_t step = view.ranks[one.rank].records().step;
    if (step != job::kNoStep) side.step = step;
    auto same = std::find_if(f.sides.begin(), f.sides.end(), [&](const job::Side& s) {
      return s.site == side.site && s.user_site == side.user_site && s.step == side.step;
    });
    if (same == f.sides.end()) f.sides.push_back(side), same = f.sides.end() - 1;
    same->ranks.push_back(view.ranks[one.rank].rank);
  }
}

std::string memory_text(const Comm& comm) {
  return comm.free_before == flight::kUnknownBytes
             ? ""
             : " with " + bytes_text(comm.free_before) + " of device memory free";
}

// On whom it failed, and what they do since.
void tell_failures(const JobView& view, const Creation& creation, Finding& f) {
  RankLines lines(f.evidence);
  for (const Creator& one : creation.failed) {
    f.suspects.push_back(view.ranks[one.rank].rank);
    if (!lines.next()) continue;
    std::string line = "rank " + std::to_string(f.suspects.back()) + "'s own creation" +
                       place(view, one.comm->site) + " failed" + memory_text(*one.comm);
    if (const job::Call* call = oldest_outstanding(view.ranks[one.rank]))
      line += "; it went on and " + waits_in_text(view, one.rank, *call);
    f.evidence.push_back(line);
  }
}

// Who waits where, and who is missing.
void tell(const JobView& view, const Creation& creation, const std::vector<std::size_t>& missing,
          Finding& f) {
  f.waiting = ranks_of(view, creation.inside);
  std::string waited = seconds_text(view.ago(creation.earliest_ns()));
  f.summary =
      wait_text(f.waiting) + " in the creation of " + name_of(view, creation) + " for " + waited + "; ";
  f.evidence.push_back(wait_text(f.waiting) + " inside " + function_of(creation) +
                       place(view, creation.any().site) + " for " + waited);
  tell_failures(view, creation, f);
  if (!creation.failed.empty()) {
    f.summary += "on " + job::ranks_text(f.suspects) + " it failed" + memory_text(*creation.failed[0].comm) +
                 ", and it cannot come any more";
    return;
  }
  RankLines lines(f.evidence);
  for (std::size_t rank : missing) {
    f.suspects.push_back(view.ranks[rank].rank);
    if (lines.next())
      f.evidence.push_back("rank " + std::to_string(f.suspects.back()) + " has not called it and " +
                           whereabouts(view, rank));
  }
  f.summary += job::ranks_text(f.suspects) + (f.suspects.size() == 1 ? " has" : " have") + " not called it";
  if (missing.size() == 1) f.summary += " and " + whereabouts(view, missing[0]);
}

std::vector<std::string> fixes(const Creation& creation) {
  if (!creation.failed.empty()) {
    return {
        "Create all communicators early, before the memory peak: call `new_group` for every group at the "
        "start and warm each up with one "
        "small collective, since NCCL takes its memory at the first use.",
        "Leave headroom for NCCL's buffers on every rank (smaller batch, `torch.cuda.empty_cache()` before "
        "the creation), and do not "
        "swallow the error: a rank whose communicator failed must end, so that the others are told."};
  }
  if (creation.is_split()) {
    return {
        "Every member of the parent has to call the split, also those that take no part (no colour).",
        "Do not put `new_group`, `split_group` or a lazily created mesh under a condition on rank or data."};
  }
  return {
      "All ranks have to call `new_group` for every group, in the same order and with the same lists, also "
      "ranks that are no members.",
      "Where a group is created at its first use, use it on all members at the same place, or create it "
      "early."};
}

bool is_advancing(const JobView& view, const std::vector<std::size_t>& missing) {
  return std::any_of(missing.begin(), missing.end(), [&](std::size_t r) {
    const RankView& rank = view.ranks[r];
    return idle_since(view, rank) != 0 && progress_of(view, rank, view.stall_after()).advances();
  });
}

// Divergences in which everybody who is missing waits in this creation follow from it.
void explain(Work& work, const Finding& f) {
  for (std::size_t i = 0; i < work.divergences.size(); ++i) {
    const Divergence& d = work.divergences[i];
    bool all = !d.missing.empty() && std::all_of(d.missing.begin(), d.missing.end(), [&](Rank rank) {
      return std::count(f.waiting.begin(), f.waiting.end(), rank) > 0;
    });
    if (d.visible.kind == job::Visible::Kind::kMissing && all) work.explained[i] = true;
  }
}

// Those that are missing wait where the ranks have parted before: that is the cause.
bool follows_from_mismatch(const Work& work, const std::vector<Rank>& suspects) {
  return std::any_of(work.divergences.begin(), work.divergences.end(), [&](const Divergence& d) {
    if (d.visible.kind != job::Visible::Kind::kArguments) return false;
    std::vector<Rank> ranks = d.comm->ranks();
    return std::any_of(suspects.begin(), suspects.end(),
                       [&](Rank rank) { return std::count(ranks.begin(), ranks.end(), rank) > 0; });
  });
}

// Everybody has come and it does not end: unknown-hang, since nothing recorded says why.
void look_at_complete(Work& work, const Creation& creation) {
  const JobView& view = work.view;
  if (!creation.failed.empty() || !creation.through.empty() || creation.inside.size() < 2) return;
  if (view.ago(creation.latest_ns()) < kPatience * view.stall_after()) return;
  Finding f;
  f.type = "unknown-hang";
  f.severity = Severity::kWarning;
  f.waiting = f.comm_ranks = ranks_of(view, creation.inside);
  f.comm = name_of(view, creation);
  std::string waited = seconds_text(view.ago(creation.latest_ns()));
  f.summary = "all " + std::to_string(creation.inside.size()) + " ranks have been inside " +
              function_of(creation) + place(view, creation.any().site) + " for " + waited +
              ", and it does not end";
  f.evidence = {"nobody is missing: they do not reach each other, or one does not answer",
                "judged by twice the stall threshold of " + seconds_text(view.stall_after())};
  f.fix = {
      "Run it once with NCCL_DEBUG=INFO and look at which interface and which peers NCCL uses on each rank "
      "(NCCL_SOCKET_IFNAME, "
      "a port that is closed between nodes, unlike versions of NCCL)."};
  add_sides(view, creation, f);
  f.at = view.seconds(creation.latest_ns());
  work.findings.push_back(std::move(f));
}

bool look_at(Work& work, const Creation& creation) {
  const JobView& view = work.view;
  if (creation.inside.empty()) return false;
  std::optional<std::vector<std::size_t>> missing = not_there(view, creation);
  if (creation.failed.empty() && missing && missing->empty()) look_at_complete(work, creation);
  if (creation.failed.empty() && (!missing || missing->empty())) return false;
  double waited = view.ago(creation.latest_ns());
  bool failed = !creation.failed.empty();
  if (!failed && waited >= view.stall_after() / 2) {
    for (std::size_t rank : *missing) {
      if (view.ranks[rank].alive()) work.wants_stacks.push_back(view.ranks[rank].index);
    }
  }
  if (waited < (failed ? kAfterFailure : view.stall_after())) return false;
  Finding f;
  f.type = "comm-init-stall";
  tell(view, creation, missing.value_or(std::vector<std::size_t>()), f);
  if (follows_from_mismatch(work, f.suspects)) return false;
  bool advances = !failed && is_advancing(view, *missing);
  f.severity = !advances                           ? Severity::kHang
               : waited >= 10 * view.stall_after() ? Severity::kWarning
                                                   : Severity::kInfo;
  f.class_certainty = Certainty::kProven;
  if (failed) {
    f.certainty = Certainty::kProven;
    f.evidence.push_back("the others are still inside " + seconds_text(kAfterFailure) +
                         " after the failure: NCCL has not told them");
  } else {
    f.evidence.push_back(threshold_text(view));
  }
  f.comm = name_of(view, creation);
  f.comm_ranks = f.waiting;
  f.comm_ranks.insert(f.comm_ranks.end(), f.suspects.begin(), f.suspects.end());
  std::sort(f.comm_ranks.begin(), f.comm_ranks.end());
  add_sides(view, creation, f);
  for (const job::Side& side : f.sides) {
    if (side.step && !f.step) f.step = side.step;
  }
  f.fix = fixes(creation);
  f.at = view.seconds(creation.latest_ns()) + (failed ? kAfterFailure : 0);
  explain(work, f);
  work.findings.push_back(std::move(f));
  return true;
}

void run(Work& work) {
  for (const Creation& creation : unfinished(work.view)) {
    if (look_at(work, creation)) return;  // others that are stuck follow from it
  }
}

}  // namespace

DSHANG_DETECTOR(14, "comm-init-stall", run);

}  // namespace dshang::detect
