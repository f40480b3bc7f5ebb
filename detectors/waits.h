// Who waits for whom: a graph over the calls that ranks have outstanding.
//
// A rank waits in the oldest outstanding call of each stream (a *head*), and with its host in a call that has
// not returned.  A head is blocked where a member of its communicator has not made the call and that member's
// host is stuck, or has made it behind another blocked head on one stream.  A host is stuck where every call
// that it may be waiting for is blocked.  What is left when everything that can still move is taken away
// waits for itself, for ever.
//
// Judged graphs (all but Hosts::kInNccl) also take a call that its stream has not reached to be behind the
// oldest outstanding call of its rank, on whatever stream: torch's streams wait for each other.
//
// Threads of one host stand for each other only where nothing says otherwise: a call that another thread has
// made before on that communicator, one that waits for nothing recorded, may still come.
//
// A rank that has ended is stuck where it was so until its end.  Ranks that were not heard from, or are
// creating a communicator, are never stuck here: other detectors speak of them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

// One rank that waits in a call, and one that it waits for.
struct Wait {
  const job::CommView* comm = nullptr;
  const job::Member* member = nullptr;  // waits
  const job::Call* call = nullptr;      // in this call
  const job::Member* other = nullptr;   // for this one
  const job::Call* behind =
      nullptr;  // which has made the call behind this one on the same stream; null: has not made it
  bool group_open = false;   // it has, in a group that is not closed
  bool host_inside = false;  // the other's host is inside a call of NCCL: no inference is needed
};

class WaitGraph {
 public:
  // When the host of a rank that is inside no call of NCCL is taken to wait for what it has outstanding.
  enum class Hosts {
    kInNccl,  // never: what is found is proven
    kInCuda,  // while its thread has been inside a function of CUDA that waits for the GPU, for
              // needed_seconds()
    kQuiet,   // also when nothing was recorded of it for a stall threshold
  };
  WaitGraph(const JobView& view, Hosts hosts);

  // The calls that cannot complete, each with one reason: of every stuck rank the oldest.  Empty: nobody is
  // stuck.
  const std::vector<Wait>& stuck() const { return stuck_; }
  // Some ranks of them in a ring: each waits for the next, the last for the first.
  std::vector<Wait> cycle() const;
  // Calls in which somebody waits for a partner of a send or receive, or a member, that is alive and has not
  // come, whether or not it still can.
  std::vector<Wait> absent() const;
  // Whether the rank (index into JobView::ranks) has a call outstanding.
  bool waits(std::size_t rank) const { return !heads_of_[rank].empty(); }

 private:
  struct Edge {
    Wait wait;
    std::size_t rank;                 // of the other
    std::optional<std::size_t> head;  // behind this one; absent: its host has to come
    bool may_come = false;            // from another thread of the host than the one that waits
  };
  struct Head {
    std::size_t rank;
    std::vector<const job::Call*> calls;  // one, or those of a group on one stream
    bool host_inside = false;
    bool blocked = true;
    std::vector<Edge> edges;
  };
  // Where an outstanding call lies: behind which head.
  struct Place {
    std::size_t head;
    bool first;
  };

  void collect(std::size_t rank);
  void join_streams(std::size_t rank);
  void look_for_free_callers(std::size_t rank);
  bool may_come(const job::Member& member) const;
  void connect(Head& head, const job::Call& call);
  void connect_to(Head& head, const job::CommView& comm, const job::Member& member, const job::Call& call,
                  const job::Member& other, const job::Call* others_call);
  void solve();
  bool holds(const Edge& edge) const;
  bool host_is_stuck(std::size_t rank) const;
  const Edge* reason(const Head& head) const;
  std::size_t head_of_host(std::size_t rank) const;

  const JobView& view_;
  std::vector<Head> heads_;
  std::vector<std::vector<std::size_t>> heads_of_;                        // by rank
  std::vector<bool> waits_on_host_, stuck_host_;                          // by rank
  std::vector<std::set<std::uint32_t>> callers_, free_callers_;           // by rank: communicators
  std::vector<std::unordered_map<const job::Call*, Place>> places_;       // by rank
  std::vector<std::unordered_map<std::uint64_t, const job::Call*>> p2p_;  // by rank: key of p2p_key()
  std::vector<Wait> stuck_;
};

// A host that is inside a function that waits for the GPU for so long is taken to wait for what is
// outstanding there.
inline constexpr double kSyncSeconds = 1;
// One that waits for its whole device does wait for it: so long only until all ranks' records were read.
inline constexpr double kDeviceSyncSeconds = 0.2;

// The function of CUDA that waits for the GPU, and since when the thread that made the rank's newest call is
// inside it.
struct GpuWait {
  std::string function;
  std::uint64_t since_ns = 0;
};
std::optional<GpuWait> gpu_wait_of(const JobView& view, const job::RankView& rank);
double needed_seconds(const GpuWait& wait);

// How long a ring of such a graph must have stood before it is told.
double needed_seconds(const JobView& view, const std::vector<Wait>& ring, WaitGraph::Hosts hosts);

// Why a finding of such a graph may be made: the evidence for each rank of the ring, and the threshold.
std::vector<std::string> host_evidence(const JobView& view, const std::vector<Wait>& ring,
                                       WaitGraph::Hosts hosts);

// "rank 0 waits in call 5 of world for rank 1"
std::string wait_text(const JobView& view, const Wait& wait);
// "all_reduce of 2000 f32 sum, step 3, module tensor, at train.py:7 step"
std::string call_details(const JobView& view, const Wait& wait);
// Name of the call's place: "call 5 of world", "receive 3 of world from rank 0".
std::string place_of(const JobView& view, const Wait& wait);

bool is_point_to_point(const JobView& view, const Wait& wait);
// Since when the call is waited for.
inline std::uint64_t since(const Wait& wait) { return wait.call->enter_ns; }
// Seconds for which all of them waited at the same time, until now or the first end of one of them.
double stood(const JobView& view, const std::vector<Wait>& ring);

}  // namespace dshang::detect
