// JobView: the records of a job, arranged for comparison.  Everything a detector may look at.
//
// Built from a Job by `make_view`; holds pointers into it, so the Job must outlive it unchanged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/job/finding.h"
#include "core/job/job.h"

namespace dshang::job {

using Seq = std::uint64_t;  // number of a call on its communicator, from 1

// One rank of one communicator.
struct Member {
  Rank rank = -1;                  // global
  std::int32_t position = -1;      // within the communicator
  std::size_t process = 0;         // index into JobView::ranks
  std::uint32_t comm_index = 0;    // index into the process's communicators
  std::vector<const Call*> calls;  // collectives, in order; calls[i]->number == first + i
  Seq first = 1;                   // number of the oldest call that is still known
  Seq last() const { return first + calls.size() - 1; }  // first - 1 when none is known
  bool has(Seq k) const { return k >= first && k <= last(); }
  const Call& call(Seq k) const { return *calls[k - first]; }
};

struct CommView {
  std::uint64_t id = 0;
  std::string name;  // "world", "world/0" (split by colour 0), ...
  std::int32_t size = 0;
  std::vector<Member> members;  // heard from, by position
  std::vector<Rank> ranks() const;
  const Member* member_of(std::size_t process) const;
  bool complete() const { return static_cast<std::int32_t>(members.size()) == size; }
};

// One process that is a rank of the job.
struct RankView {
  Rank rank = -1;
  const Process* process = nullptr;
  const Names* names = nullptr;
  std::size_t index = 0;  // into Job::processes
  const RankRecords& records() const { return process->records; }
  const ProcessJournal& journal() const { return process->journal; }
  bool alive() const { return !process->journal.death.has_value(); }
};

struct JobView {
  const Job* job = nullptr;
  std::vector<RankView> ranks;         // by rank; auxiliary and superseded processes are left out
  std::vector<std::size_t> auxiliary;  // indices into Job::processes
  std::vector<CommView> comms;         // oldest first
  std::int32_t world_size = 0;
  double median_step = 0;  // seconds between steps of the slowest rank, 0 = not known

  // Seconds without progress after which a judged finding may be made: DSHANG_STALL_AFTER, widened by the
  // job's own rhythm, because with steps of a minute a wait of half a minute is nothing.
  double stall_after() const;

  const Params& params() const { return job->params; }
  const Names& names() const { return job->names; }
  std::uint64_t now_ns() const { return job->journal.now_ns; }
  double seconds(std::uint64_t ns) const;  // since job start, 0 for times before it
  double ago(std::uint64_t ns) const;      // seconds before now
  const RankView* by_rank(Rank rank) const;
  const CommView* by_id(std::uint64_t comm_id) const;
  std::string op_name(const RankView& rank, const Call& call) const;  // "all_gather"; "unknown"
  std::uint32_t op_traits(const RankView& rank, const Call& call) const;
  bool knows_purposes(const RankView& rank) const;  // sites, modules, phases or steps were recorded
};

JobView make_view(const Job& job);

// What must agree on all members of a collective, as one number.
std::uint64_t signature(const RankView& rank, const Call& call);

inline bool is_done(const Call& call) { return call.flags & flight::kCallDone; }
inline bool is_returned(const Call& call) { return call.flags & flight::kCallReturned; }

// A call of a group whose end the host is inside: there its start mark is placed.
inline bool is_closing(const Call& call) {
  return (call.flags & flight::kCallGroupPending) && (call.flags & flight::kCallStartMarked);
}
// A call of a group that is open: it is not issued.
inline bool is_held_back(const Call& call) {
  return (call.flags & flight::kCallGroupPending) && !is_closing(call);
}

// Whether the rank is known to be waiting in this call: not done, as far as marks or the return can tell.
bool is_outstanding(const Call& call);

// Whether the rank waits in this outstanding call, or waited in it for a while before its own process ended:
// a call that was made just before the end may be finished although nobody saw it.
bool waits_in(const RankView& rank, const Call& call);

// Since when the rank is inside the creation of a communicator, 0 = it is not.
std::uint64_t creating_since(const RankView& rank);

std::string list_of(const std::vector<Rank>& ranks);     // "0, 2, 3", long ones as ranges "0-6, 8"
std::string ranks_text(const std::vector<Rank>& ranks);  // "rank 2", "ranks 0, 1"
const char* text_of(flight::DType dtype);                // "f32", nullptr for none
const char* text_of(flight::ReduceOp op);                // "sum", nullptr for none

}  // namespace dshang::job
