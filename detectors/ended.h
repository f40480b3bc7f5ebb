// Processes that have ended, and who waits for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

inline constexpr std::uint64_t kTogetherNs = 1'000'000'000;  // endings within this time have one cause

struct Ended {
  const job::RankView* rank = nullptr;
  job::Death death;
  bool normal() const { return death.known != job::EndingKnown::kNo && !death.by_signal && death.code == 0; }
  // Asked to stop: SIGINT, SIGTERM, or the exit status that shells and launchers make of them.
  bool interrupted() const;
  // Ended by the kernel's OOM killer, as far as its counters tell.
  bool for_want_of_memory() const { return death.oom_kills > 0; }
  std::string text() const;  // "was killed by SIGKILL", "ended with exit status 1", ...
};

// By time of death.
std::vector<Ended> endings(const JobView& view);

// Whether it ended by a signal, or nobody knows how, together with another rank (within a second, the same
// way) and with nobody waiting: the job was stopped from outside.
bool stopped_with_others(const JobView& view, const std::vector<Ended>& all, const Ended& ended);

// Ranks that wait (or waited until they ended, later) in a call that the ended rank can no longer complete.
struct Victims {
  const job::CommView* comm = nullptr;
  job::Seq call = 0;           // the first such call
  job::Seq last_of_ended = 0;  // the last call that the ended rank made there
  std::vector<Rank> ranks;
  std::uint64_t since_ns = 0;  // when the first of them entered it
  std::uint64_t until_ns = 0;  // when the last of them still waited
};
std::optional<Victims> victims_of(const JobView& view, const job::RankView& ended);

// True when the ranks had parted, or had waited for each other longer than the stall threshold, before this
// one ended: then its end is a consequence.
bool had_cause_before(const Work& work, const Ended& ended);

// Fills communicator, position, sides, waiting and step from the victims.
void place_at(const JobView& view, const Victims& victims, Finding& finding);

// Marks the divergences in which nobody but ended ranks is missing.
void explain_missing(Work& work, const std::vector<Rank>& ended);

}  // namespace dshang::detect
