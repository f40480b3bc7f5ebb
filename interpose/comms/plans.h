// What each function that makes a communicator is asked for: the handlers that the rows of nccl.def of the kinds
// kCreate and kDerive need besides the row.  A new such row does not compile without its plan here.
//
// plan(row, writer, i, arguments...) of kCreate: the i-th of planned(row, arguments...) communicators.
// plan(row, parent id, ordinal, arguments...) of kDerive: `ordinal` is the number of this call among the parent's of
// its op, from 1.
#pragma once

#include "interpose/comms/identity.h"
#include "interpose/comms/life.h"

namespace dshang::interpose::comms {

template <Row R>
struct RowTag {};

inline constexpr unsigned kMostAtOnce = 64;  // devices of one ncclCommInitAll

template <Row R, typename... P>
constexpr unsigned planned(RowTag<R>, P...) {
  return 1;
}
inline unsigned planned(RowTag<Row::ncclCommInitAll>, abi::CommOut, int devices, const int*) {
  if (devices < 0) return 0;
  return static_cast<unsigned>(devices) < kMostAtOnce ? static_cast<unsigned>(devices) : kMostAtOnce;
}

Plan plan_init(const flight::Writer& writer, abi::CommOut where, int size, const abi::UniqueId& unique_id, int rank);
Plan plan_init_all(const flight::Writer& writer, abi::CommOut where, unsigned i, int size, const int* devices);

inline Plan plan(RowTag<Row::ncclCommInitRank>, const flight::Writer& writer, unsigned, abi::CommOut where, int size,
                 const abi::UniqueId& unique_id, int rank) {
  return plan_init(writer, where, size, unique_id, rank);
}
inline Plan plan(RowTag<Row::ncclCommInitRankConfig>, const flight::Writer& writer, unsigned, abi::CommOut where,
                 int size, const abi::UniqueId& unique_id, int rank, abi::Config) {
  return plan_init(writer, where, size, unique_id, rank);
}
// Of several unique ids NCCL too takes the first for the communicator's own.
inline Plan plan(RowTag<Row::ncclCommInitRankScalable>, const flight::Writer& writer, unsigned, abi::CommOut where,
                 int size, int rank, int ids, const abi::UniqueId* unique_ids, abi::Config) {
  return plan_init(writer, where, size, ids > 0 && unique_ids ? *unique_ids : abi::UniqueId{}, rank);
}
inline Plan plan(RowTag<Row::ncclCommInitAll>, const flight::Writer& writer, unsigned i, abi::CommOut where, int size,
                 const int* devices) {
  return plan_init_all(writer, where, i, size, devices);
}

inline Plan plan(RowTag<Row::ncclCommSplit>, std::uint64_t parent, std::uint64_t ordinal, abi::Comm, int color, int,
                 abi::CommOut where, abi::Config) {
  Plan plan;
  plan.origin = flight::CommOrigin::kSplit;
  plan.id = split_id(parent, ordinal, color);
  plan.parent = parent;
  plan.color = color;
  plan.ordinal = static_cast<std::uint32_t>(ordinal);
  plan.where = where;
  return plan;
}

inline Plan plan(RowTag<Row::ncclCommShrink>, std::uint64_t parent, std::uint64_t ordinal, abi::Comm, int* excluded,
                 int excluded_count, abi::CommOut where, abi::Config, int) {
  Plan plan;
  plan.origin = flight::CommOrigin::kShrink;
  plan.id = shrink_id(parent, ordinal, excluded, excluded_count);
  plan.parent = parent;
  plan.ordinal = static_cast<std::uint32_t>(ordinal);
  plan.where = where;
  return plan;
}

// New ranks pass no parent, old ones no unique id (but the root, which has both): who reads the entries joins them
// through the root's, by parent and ordinal.
inline Plan plan(RowTag<Row::ncclCommGrow>, std::uint64_t parent, std::uint64_t ordinal, abi::Comm, int size,
                 const abi::UniqueId* unique_id, int rank, abi::CommOut where, abi::Config) {
  Plan plan;
  plan.origin = flight::CommOrigin::kGrow;
  plan.id = unique_id ? init_id(*unique_id, size, 0) : grow_id(parent, ordinal, size);
  plan.nccl_hash = unique_id ? nccl_hash(*unique_id) : 0;
  plan.parent = parent;
  plan.ordinal = static_cast<std::uint32_t>(ordinal);
  plan.rank = rank;
  plan.size = size;
  plan.where = where;
  return plan;
}

}  // namespace dshang::interpose::comms
