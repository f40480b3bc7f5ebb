#include "simgpu/nccl/gather.h"

#include <algorithm>
#include <tuple>

#include "simgpu/nccl/error.h"

namespace simgpu::nccl {
namespace {

class Meeting {
 public:
  Meeting(Comm& parent, Gathering Member::*kind, uint64_t number, std::vector<int> participants)
      : parent_(parent), kind_(kind), number_(number), participants_(std::move(participants)) {}

  Result run(int color, int key, Gathered* gathered) {
    // What this member writes next is read by the others as long as they have not finished the last
    // gathering.
    if (!all([&](const Gathering& other) { return other.finished.load() + 1 >= number_; })) return closed();
    mine().color = color;
    mine().key = key;
    mine().entered.store(number_);
    parent_.bell().ring();
    if (!all([&](const Gathering& other) { return other.entered.load() >= number_; })) return closed();

    Result result = kOk;
    if (color != kSplitNoColor) result = meet(color, gathered);
    mine().finished.store(number_);
    parent_.bell().ring();
    return result;
  }

 private:
  Gathering& of(int rank) { return parent_.segment().member(rank).*kind_; }
  Gathering& mine() { return of(parent_.rank()); }
  Result closed() const { return fail(kInternalError, "the communicator was aborted"); }

  template <class Condition>
  bool all(Condition&& condition) {
    return parent_.until_on_host([&] {
      return std::all_of(participants_.begin(), participants_.end(),
                         [&](int rank) { return condition(of(rank)); });
    });
  }

  Result meet(int color, Gathered* gathered) {
    std::vector<std::tuple<int, int>> members;  // by key, then by rank in the parent
    for (int rank : participants_) {
      if (of(rank).color == color) members.emplace_back(of(rank).key, rank);
    }
    std::sort(members.begin(), members.end());
    const auto position = [&](int rank) {
      return std::find_if(members.begin(), members.end(),
                          [&](const auto& m) { return std::get<1>(m) == rank; });
    };
    gathered->rank = static_cast<int>(position(parent_.rank()) - members.begin());
    gathered->size = static_cast<int>(members.size());

    Gathering& leader = of(std::get<1>(members.front()));
    if (&leader == &mine()) {
      if (!create_segment(&leader.child)) leader.child.fd = -1;
      leader.published.store(number_);
      parent_.bell().ring();
    } else if (!parent_.until_on_host([&] { return leader.published.load() >= number_; })) {
      return closed();
    }
    gathered->segment = leader.child;
    return leader.child.fd >= 0 ? kOk : fail(kSystemError, "no memory for a communicator");
  }

  Comm& parent_;
  Gathering Member::*kind_;
  const uint64_t number_;
  const std::vector<int> participants_;
};

}  // namespace

Result gather_split(Comm& parent, uint64_t number, int color, int key, Gathered* gathered) {
  std::vector<int> everybody(parent.size());
  for (int rank = 0; rank < parent.size(); ++rank) everybody[rank] = rank;
  return Meeting(parent, &Member::split, number, std::move(everybody)).run(color, key, gathered);
}

Result gather_shrink(Comm& parent, uint64_t number, const std::vector<bool>& stays, Gathered* gathered) {
  std::vector<int> remaining;
  for (int rank = 0; rank < parent.size(); ++rank) {
    if (stays[rank]) remaining.push_back(rank);
  }
  return Meeting(parent, &Member::shrink, number, std::move(remaining)).run(0, parent.rank(), gathered);
}

}  // namespace simgpu::nccl
