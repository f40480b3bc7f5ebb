// The visible position: a walk along the members' calls, a column at a time.
#include <algorithm>

#include "core/job/divergence.h"

namespace dshang::job {
namespace {

const Member* longest(const CommView& comm) {
  const Member* best = nullptr;
  for (const Member& member : comm.members) {
    if (!best || member.last() > best->last()) best = &member;
  }
  return best;
}

// First call in [from, to] whose arguments differ between the two; to + 1 if there is none.
Seq first_difference(const JobView& view, const Member& a, const std::vector<std::uint64_t>& signatures,
                     Seq from, const Member& b, Seq to) {
  const RankView& rank_b = view.ranks[b.process];
  for (Seq k = from; k <= to; ++k) {
    if (signatures[k - a.first] != signature(rank_b, b.call(k))) return k;
  }
  return to + 1;
}

// Whether a member waits in call k or behind it.
bool waits_from(const RankView& rank, const Member& member, Seq k) {
  for (Seq at = std::max(k, member.first); at <= member.last(); ++at) {
    if (waits_in(rank, member.call(at))) return true;
  }
  return false;
}

}  // namespace

std::optional<Visible> find_visible(const JobView& view, const CommView& comm) {
  const Member* reference = longest(comm);
  if (!reference || comm.members.size() < 2) return std::nullopt;
  std::vector<std::uint64_t> signatures;
  signatures.reserve(reference->calls.size());
  for (const Call* call : reference->calls)
    signatures.push_back(signature(view.ranks[reference->process], *call));

  Seq differs = UINT64_MAX, shortest = UINT64_MAX;
  for (const Member& member : comm.members) {
    shortest = std::min(shortest, member.last());
    if (&member == reference) continue;
    Seq from = std::max(reference->first, member.first);
    Seq to = std::min({reference->last(), member.last(), differs - 1});
    Seq k = first_difference(view, *reference, signatures, from, member, to);
    if (k <= to) differs = k;
  }
  if (differs != UINT64_MAX) return Visible{Visible::Kind::kArguments, differs};
  Seq k = shortest + 1;
  bool someone_waits = std::any_of(comm.members.begin(), comm.members.end(), [&](const Member& member) {
    return member.last() >= k && waits_from(view.ranks[member.process], member, k);
  });
  if (someone_waits) return Visible{Visible::Kind::kMissing, k};
  return std::nullopt;
}

std::vector<Rank> waiting_from(const JobView& view, const CommView& comm, Seq call) {
  std::vector<Rank> waiting;
  for (const Member& member : comm.members) {
    if (waits_from(view.ranks[member.process], member, call)) waiting.push_back(member.rank);
  }
  return waiting;
}

}  // namespace dshang::job
