// What was special about a request for device memory that failed, as far as it can be told cheaply: ranks
// that failed for the same reason in the same step are told as one.
#pragma once

#include <string>
#include <vector>

#include "detectors/alloc_message.h"
#include "detectors/registry.h"

namespace dshang::detect {

enum class AllocCause { kStep, kSave, kOthersOnCard, kEvaluation, kLongerBatch };

AllocCause cause_of(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure);

// The message of the exception that followed; "" = none.
std::string message_behind(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure);

// What other processes have taken of the card, where the request would have been satisfied without them; else
// 0.
std::uint64_t taken_in_its_place(const std::vector<CardUser>& users, const job::AllocFailure& failure);

// Its batch is far larger than the usual one of these steps.
bool has_longer_batch(const job::AllocFailure& failure, const std::vector<const job::MemoryStep*>& steps);

// While saving, as the probe says or a function of the user's is named; weights may be gathered within it, in a
// phase of their own.
bool in_save(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure);

bool in_save_phase(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure);

// The outermost function of the user's on the way to it that is named for saving, where no phase of a step says that it
// is something else; "" = none.
std::string own_save(const JobView& view, const job::AllocFailure& failure);

// deepspeed.zero.GatheredParameters, as the probe names it.
bool in_gather(const JobView& view, const job::AllocFailure& failure);

// The newest forward pass before it was one of a model that is not in training (not only a part of it that is
// frozen), and nothing of training came behind.
bool in_evaluation(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure);

// What no call of this process accounts for: context, NCCL, libraries, other processes; 0 where not known.
std::uint64_t taken_by_nobody(const job::AllocFailure& failure);

}  // namespace dshang::detect
