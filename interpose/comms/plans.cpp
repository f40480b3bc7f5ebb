#include "interpose/comms/plans.h"

namespace dshang::interpose::comms {
namespace {

std::atomic<std::uint32_t> init_alls{0};

}  // namespace

Plan plan_init(const flight::Writer& writer, abi::CommOut where, int size, const abi::UniqueId& unique_id, int rank) {
  Plan plan;
  plan.origin = flight::CommOrigin::kInit;
  plan.nccl_hash = nccl_hash(unique_id);
  plan.rank = rank;
  plan.size = size;
  plan.where = where;
  std::uint32_t repeat = 0;
  do {
    plan.id = init_id(unique_id, size, repeat);
  } while (earlier_with(writer, plan.id, rank) && ++repeat);
  return plan;
}

Plan plan_init_all(const flight::Writer& writer, abi::CommOut where, unsigned i, int size, const int* devices) {
  std::uint32_t ordinal = i ? init_alls.load(std::memory_order_relaxed) : ++init_alls;
  Plan plan;
  plan.origin = flight::CommOrigin::kInitAll;
  plan.id = init_all_id(process_hash(writer), ordinal, size);
  plan.rank = static_cast<std::int32_t>(i);
  plan.size = size;
  plan.device = devices ? devices[i] : static_cast<std::int32_t>(i);
  plan.where = where ? where + i : nullptr;
  return plan;
}

}  // namespace dshang::interpose::comms
