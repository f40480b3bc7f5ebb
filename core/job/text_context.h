// What a call or visit of the readable form (dump.h) has where its line does not say it: dump() leaves out
// what this says, parse() fills it in.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "core/job/records.h"

namespace dshang::job {

// What a process can do where the text does not list it; NCCL's names.
const std::vector<flight::OpInfo>& default_ops();

inline constexpr std::uint64_t kDefaultStartNs = 1000ull * 1000000000;
inline constexpr std::uint64_t kBetweenRecordsNs = 1000000;

class TextContext {
 public:
  explicit TextContext(std::uint64_t start_ns) : at_ns_(start_ns) {}

  std::uint64_t at_ns() const { return at_ns_; }  // of the record above
  std::uint64_t next_at_ns() const { return at_ns_ + kBetweenRecordsNs; }
  std::int64_t step() const { return step_; }
  std::int64_t announced_step() const { return announced_step_; }  // of the last step visit
  std::uint32_t micro() const { return micro_; }
  NameId phase() const { return phases_.empty() ? 0 : phases_.back(); }
  NameId module() const { return modules_.empty() ? 0 : modules_.back(); }

  // The number that comes next where this call is counted; needs comm, op, root_or_peer and flags.
  std::uint64_t next_number(const Call& call, std::uint32_t traits) const;
  // Counted collectives on a communicator so far.
  std::uint64_t collectives(std::uint32_t comm) const;

  void pass(const Call& call, std::uint32_t traits);
  void pass(const Visit& visit);

 private:
  using Counter = std::tuple<std::uint32_t, int, std::int32_t>;  // communicator, kind, peer
  static Counter counter(const Call& call, std::uint32_t traits);

  std::uint64_t at_ns_;
  std::int64_t step_ = kNoStep, announced_step_ = kNoStep;
  std::uint32_t micro_ = 0;
  std::vector<NameId> phases_, modules_;
  std::map<Counter, std::uint64_t> numbers_;
};

// Fields of a process that follow from its communicators.
std::uint32_t default_world_rank(const RankRecords& records);

}  // namespace dshang::job
