#include "core/job/odd_arguments.h"

#include <optional>

namespace dshang::job {
namespace {

constexpr std::size_t kFewest = 2;  // earlier calls of each member

bool is_alike(const JobView& view, const RankView& a, const Call& one, const RankView& b, const Call& other) {
  const Names& names = view.names();
  return one.site && other.site && names.place_of(one.site) &&
         names.place_of(one.site) == names.place_of(other.site) &&
         view.op_name(a, one) == view.op_name(b, other);
}

}  // namespace

std::vector<Rank> with_new_arguments(const JobView& view, const CommView& comm, Seq k) {
  std::optional<std::uint64_t> usual;
  const Member& first = comm.members.front();
  for (const Member& member : comm.members) {
    const RankView& rank = view.ranks[member.process];
    if (!member.has(k) || !first.has(k)) return {};
    const Call& here = member.call(k);
    if (!is_alike(view, view.ranks[first.process], first.call(k), rank, here)) return {};
    std::size_t earlier = 0;
    for (Seq n = member.first; n < k; ++n) {
      const Call& call = member.call(n);
      if (!is_alike(view, rank, call, rank, here)) continue;
      std::uint64_t had = signature(rank, call);
      if (usual.value_or(had) != had) return {};
      usual = had;
      ++earlier;
    }
    if (earlier < kFewest) return {};
  }
  std::vector<Rank> odd;
  for (const Member& member : comm.members) {
    if (signature(view.ranks[member.process], member.call(k)) != usual) odd.push_back(member.rank);
  }
  return odd.size() < comm.members.size() ? odd : std::vector<Rank>();
}

}  // namespace dshang::job
