#include "detectors/alloc_cause.h"

#include <algorithm>

#include "core/job/site_policy.h"
#include "detectors/memory_use.h"

namespace dshang::detect {
namespace {

constexpr double kLargerBatch = 1.3;
constexpr std::uint64_t kMessageNs = 10'000'000'000;  // the exception comes that soon behind the failure
constexpr double kOthersShare = 0.05;  // of the card: what other processes hold is worth telling first

}  // namespace

std::string message_behind(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure) {
  const auto& exceptions = rank.records().exceptions;
  for (std::uint64_t n = exceptions.first(); n < exceptions.end(); ++n) {
    const job::Exception& one = exceptions.at(n);
    if (one.time_ns < failure.time_ns || one.time_ns > failure.time_ns + kMessageNs) continue;
    std::string message = view.names().text(one.message);
    if (allocator_state_in(message)) return message;
  }
  return "";
}

std::uint64_t taken_in_its_place(const std::vector<CardUser>& users, const job::AllocFailure& failure) {
  std::uint64_t sum = 0;
  for (const CardUser& user : users) sum += user.bytes;
  Bytes total = known(failure.total);
  if (!total || failure.size > sum + known(failure.free).value_or(0)) return 0;
  return static_cast<double>(sum) < kOthersShare * static_cast<double>(*total) ? 0 : sum;
}

bool has_longer_batch(const job::AllocFailure& failure, const std::vector<const job::MemoryStep*>& steps) {
  const job::MemoryStep* usual = usual_batch(steps);
  if (!usual || steps.size() < 3) return false;
  return static_cast<double>(elements(failure.batch)) >=
         kLargerBatch * static_cast<double>(elements(usual->batch));
}

bool in_gather(const JobView& view, const job::AllocFailure& failure) {
  return failure.phase && view.names().text(failure.phase) == "gather";
}

std::string own_save(const JobView& view, const job::AllocFailure& failure) {
  if (!failure.site || (failure.phase && !in_gather(view, failure))) return "";
  const job::Names& names = view.names();
  std::string found;
  for (const job::FrameName& frame : names.site(failure.site).frames) {
    const std::string& function = names.text(frame.function);
    bool is_named_so = function.starts_with("save") || function.find("_save") != function.npos;
    if (is_named_so && job::frame_owner(names.text(frame.file)) == job::FrameOwner::kUser) found = function;
  }
  return found;
}

bool in_save(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure) {
  return in_save_phase(view, rank, failure) || !own_save(view, failure).empty();
}

bool in_save_phase(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure) {
  if (failure.phase && view.names().text(failure.phase) == "save") return true;
  const auto& visits = rank.records().visits;
  std::size_t popped = 0;
  for (std::uint64_t n = visits.end(); n-- > visits.first();) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn || visit.time_ns > failure.time_ns) continue;
    if (visit.kind == flight::VisitKind::kStep) return false;
    if (visit.kind == flight::VisitKind::kPhasePop) ++popped;
    if (visit.kind != flight::VisitKind::kPhasePush) continue;
    if (popped == 0 && view.names().text(visit.phase) == "save") return true;
    if (popped > 0) --popped;
  }
  return false;
}

bool in_evaluation(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure) {
  const auto& visits = rank.records().visits;
  std::uint8_t outermost =
      2;  // the first module of the pass that is looked at, from behind: whether it trains
  for (std::uint64_t n = visits.end(); n-- > visits.first();) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn || visit.time_ns > failure.time_ns) continue;
    if (visit.kind == flight::VisitKind::kModuleEnter) outermost = visit.training;
    if (visit.kind == flight::VisitKind::kStep) return false;
    if (visit.kind != flight::VisitKind::kPhasePush) continue;
    const std::string& phase = view.names().text(visit.phase);
    if (phase == "eval") return true;
    if (phase == "forward") return outermost == 0;
    if (phase == "backward" || phase == "optimizer") return false;
  }
  return false;
}

std::uint64_t taken_by_nobody(const job::AllocFailure& failure) {
  Bytes free = known(failure.free), total = known(failure.total);
  if (!free || !total) return 0;
  return *total - std::min(*total, *free + failure.live_device + failure.live_other);
}

AllocCause cause_of(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure) {
  if (in_save(view, rank, failure)) return AllocCause::kSave;
  if (taken_in_its_place(other_users_in(message_behind(view, rank, failure)), failure))
    return AllocCause::kOthersOnCard;
  if (in_evaluation(view, rank, failure)) return AllocCause::kEvaluation;
  std::vector<const job::MemoryStep*> before = memory_steps(rank);
  before.erase(std::remove_if(before.begin(), before.end(),
                              [&](const job::MemoryStep* step) { return step->time_ns > failure.time_ns; }),
               before.end());
  return has_longer_batch(failure, before) ? AllocCause::kLongerBatch : AllocCause::kStep;
}

}  // namespace dshang::detect
