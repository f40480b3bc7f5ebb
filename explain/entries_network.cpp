// NCCL and the network.
#include <algorithm>

#include "explain/hits.h"
#include "explain/words.h"

namespace dshang::explain {
namespace {

void no_infiniband(const Entry&, const Observed& seen, Hits& hits) {
  const NcclLines& nccl = seen.nccl;
  if (nccl.nodes() < 2 || !(nccl.over_sockets() || nccl.no_infiniband() || nccl.infiniband_disabled()))
    return;
  std::string text = counted(static_cast<std::uint64_t>(nccl.nodes()), "node");
  text += nccl.over_sockets() ? " exchange data over TCP sockets" : " and no InfiniBand in use";
  Hits::Hit hit;
  for (const auto& place : {nccl.sockets(), nccl.no_infiniband(), nccl.infiniband_disabled()}) {
    if (place && (hit.place.line == 0 || *place < hit.place)) hit.place = *place;
  }
  if (nccl.infiniband_disabled()) {
    hit.summary = text + ": NCCL_IB_DISABLE=1 is set";
    hit.fix = "Unset NCCL_IB_DISABLE.";
  } else {
    hit.summary = text + (nccl.no_infiniband() ? ": NCCL found no InfiniBand device" : "");
  }
  hits.add(hit);
}

void closed_connection(const Entry& entry, const Observed& seen, Hits& hits) {
  const Sighting* sighting = seen.sighting(entry.id);
  if (!sighting) return;
  std::string gone = gone_at_barrier(seen);
  if (gone.empty()) return hits.add(*sighting);
  hits.add({sighting->first, sighting->speakers, sighting->count,
            gone + " closed its connection before a barrier: it ended first", sighting->text,
            "Look at what " + gone + " did last.", false});
}

// Data between GPUs is lost: all ranks wait in the same first call.
void peer_to_peer(const Entry& entry, const Observed& seen, Hits& hits) {
  if (const Sighting* sighting = seen.sighting(entry.id)) hits.add(*sighting);
  const auto& reports = seen.watchdog.reports();
  if (reports.empty() || !seen.nccl.between_gpus() || seen.nccl.nodes() > 1 || seen.trained()) return;
  auto sides = seen.watchdog.sides();
  bool nothing_completed =
      std::all_of(reports.begin(), reports.end(), [](const auto& report) { return report.call.seq <= 1; });
  if (sides.size() != 1 || sides[0].ranks.size() < 2 || !nothing_completed) return;
  Hits::Hit hit;
  hit.place = seen.watchdog.first();
  hit.summary = ranks_text(sides[0].ranks) + " agree on their first call, " + sides[0].call.text() +
                ", and it never completes; NCCL had chosen peer-to-peer between the GPUs (judged)";
  hits.add(hit);
}

}  // namespace

const Entries& network_entries() {
  static const Entries entries = {
      {"12.3-4",
       Severity::kWillFail,
       "a CUDA call inside NCCL failed",
       {{R"(unhandled cuda error \(run with NCCL_DEBUG=INFO for details\))"},
        {R"(ncclUnhandledCudaError: Call to CUDA function failed)"},
        {R"(Cuda failure (\d+ )?'[^']+')"}},
       "NCCL 2.x",
       "the text behind `Cuda failure` says which: 2 no device memory left; 802 fabric manager not running; "
       "803 driver and library differ; 700 an earlier kernel of the program",
       "2: free memory; 802: `systemctl start nvidia-fabricmanager`; 803: reboot, or the host's driver in "
       "the container; "
       "700: run with CUDA_LAUNCH_BLOCKING=1. Without that text: NCCL_DEBUG=WARN.",
       "NCCL"},
      {"12.9-3",
       Severity::kWillHang,
       "a rank or node cannot reach another, or waited for one that did not come",
       {{R"(NCCL WARN .*[Cc]onnect to \S+ (failed|returned) ?:? ?(Connection refused|Connection timed out|No route to host))"},
        {R"(Bootstrap : no socket interface found)"},
        {R"(The client socket has timed out after \d+ms while trying to connect to \(.+, \d+\))"},
        {R"(client socket has timed out after \d+ms while trying to connect)"},
        {R"(Timed out after \d+ seconds waiting for clients\. \d+/\d+ clients joined)"}},
       "torch 2.x, NCCL 2.x",
       "a rank or node that was never started or has failed, the wrong interface, or blocked ports",
       "Were all nodes started, with the same --nnodes, MASTER_ADDR and MASTER_PORT? Then: "
       "NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) = the interface of MASTER_ADDR; open all TCP ports "
       "between the "
       "nodes. NCCL_PORT_RANGE does not exist.",
       "NVIDIA/nccl#388; pytorch/pytorch#52916"},
      {"12.9-4",
       Severity::kSlow,
       "no InfiniBand between the nodes",
       {},
       "NCCL 2.x",
       "no InfiniBand device is visible (container without /dev/infiniband, no libibverbs), or it is "
       "switched off",
       "Mount /dev/infiniband, `--ulimit memlock=-1`, NCCL_IB_HCA; NCCL_IB_DISABLE=0 is the default and "
       "changes nothing.",
       "NVIDIA/nccl#952",
       Role::kCause,
       {},
       no_infiniband},
      {"X-08",
       Severity::kWillFail,
       "/dev/shm is too small",
       {{R"(Error while creating shared memory segment (\S+) \(size \d+\))"},
        {R"(Call to (posix_fallocate|shm_open) failed ?: (No space left on device|Permission denied))"},
        {R"(fallocate: Failed to extend \S+ to \d+ bytes, error: No space left on device)"}},
       "NCCL before 2.30 (first), 2.30.7 (others)",
       "NCCL's shared-memory transport and loader workers use it; a container "
       "gets 64 MiB",
       "`docker run --shm-size=16g` or `--ipc=host`; Kubernetes: an emptyDir with `medium: Memory`.",
       "pytorch/torchtitan#853; NVIDIA/nccl#342, #290",
       Role::kCause,
       {"12.7-5", "12.3-4"}},
      {"X-10",
       Severity::kWillHang,
       "peer-to-peer between the GPUs does not work",
       {{R"(peer access is not supported between these two devices)"}},
       "CUDA, NCCL 2.x",
       "PCIe access control (ACS) or the IOMMU redirects the traffic",
       "Try NCCL_P2P_DISABLE=1: slow, but if it works that was it. Then disable ACS and VT-d in the BIOS, or "
       "`iommu=pt`.",
       "NVIDIA/nccl#631, #667, #2079",
       Role::kCause,
       {},
       peer_to_peer},
      {"X-45",
       Severity::kWillFail,
       "the limit of locked memory is too low",
       {{R"(ibv_reg_mr(_iova2)? failed with error Cannot allocate memory)"},
        {R"(ibv_create_(cq|qp) failed with error Cannot allocate memory)"},
        {R"(cudaHostAlloc.*out of memory)"}},
       "NCCL 2.x; pin_memory is on by default since DeepSpeed 0.19.5",
       "pages cannot be pinned",
       "`ulimit -l unlimited`, `--ulimit memlock=-1`, or `\"pin_memory\": false`.",
       "NVIDIA/nccl, deepspeedai/DeepSpeed"},
      {"E-06",
       Severity::kWillHang,
       "InfiniBand lost a message between two nodes",
       {{R"(NCCL WARN NET/IB : Got (completion|async event).*(status=12|error|port))"}},
       "NCCL 2.x",
       "a bad cable or port, a node that died, or different settings on the nodes",
       "Look at the peer that the line names: is it alive? Then `ibstat` and the port counters on both "
       "nodes.",
       "NVIDIA/nccl#1814",
       Role::kConsequence},
      {"E-07",
       Severity::kWillFail,
       "another process closed its connection: it ended first",
       {{R"(Connection closed by (remote )?peer)"},
        {R"(Connection reset by peer)", R"(torch|deepspeed)"},
        {R"(ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely)"},
        {R"(NCCL WARN .*Connection closed by remote peer)"}},
       "torch 2.x (gloo), NCCL 2.x",
       "a peer died; this rank only notices it",
       "Look at the rank that failed first, not at this one.",
       "gloo; NCCL",
       Role::kConsequence,
       {},
       closed_connection},
  };
  return entries;
}

}  // namespace dshang::explain
