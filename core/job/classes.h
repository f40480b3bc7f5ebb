// Classes: ranks in equal state, so that a job of a thousand ranks is shown as the few things that its ranks
// are doing.
#pragma once

#include <string>
#include <vector>

#include "core/job/model.h"
#include "core/job/report.h"

namespace dshang::job {

// What a rank does at the end of its records, or did until its process ended.
struct RankState {
  enum class Doing {
    kWaits,     // in `call`, which is not done
    kCreating,  // a communicator
    kOnHost,    // nothing outstanding; `call` is the last that it made
  };
  Doing doing = Doing::kOnHost;
  const Call* call = nullptr;  // null = none was recorded
  std::int64_t step = kNoStep;
  NameId phase = 0, module = 0;
  SiteId site = 0;             // where it stands: its stack where that is newer than the call
  bool site_is_stack = false;  // recorded by the stack reader, not with the call
  std::uint64_t since_ns = 0;  // when it entered that state, 0 = not known
};

RankState state_of(const JobView& view, const RankView& rank);
const char* text_of(RankState::Doing doing);    // "waits", "on the host", ...
std::string ending_text(const RankView& rank);  // "signal 9", "status 1", "unknown"; "" while it lives
std::uint64_t state_key(const JobView& view, const RankView& rank, const RankState& state);

// The newest stack of the thread whose number is the process's own, if anything is known of it.
const Stack* main_stack(const RankRecords& records);

struct RankClass {
  std::vector<std::size_t> members;  // indices into JobView::ranks; the first one stands for all
  RankState state;                   // of the first one
};

// Those with suspects of the first finding come first, then by their lowest rank.
std::vector<RankClass> rank_classes(const JobView& view, const Report& report);

// A stretch of a communicator's calls, and the members that made the same there.
struct CallList {
  struct Class {
    std::vector<std::size_t> members;  // indices into CommView::members; the first one stands for all
  };
  const CommView* comm = nullptr;
  Seq from = 1, to = 0;              // calls shown
  std::vector<Class> classes;        // the largest, then those with suspects, then by size
  std::size_t classes_left_out = 0;  // behind the first kClassesListed
  const Finding* finding = nullptr;  // the first that speaks of this communicator
};

inline constexpr std::size_t kListsShown = 24;     // communicators
inline constexpr std::size_t kClassesListed = 12;  // of each
inline constexpr Seq kListBefore = 24, kListLongest = 96;

// The stretch around where the members part, or the end; those of findings first, then those that somebody
// waits in.
std::vector<CallList> call_lists(const JobView& view, const Report& report);

}  // namespace dshang::job
