#include "interpose/runtime/ordered_failure.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <atomic>
#include <initializer_list>

#include "interpose/runtime/api.h"

namespace dshang::interpose::ordered_failure {
namespace {

runtime::Failure orders[kOrders];
unsigned taken = 0;
std::atomic<const runtime::Failure*> newest{nullptr};

}  // namespace

void take(const flight::Writer& writer, const flight::Message& message) {
  if (taken == kOrders) return;
  runtime::Failure& order = orders[taken++];
  order.comms = writer.header().comm_count.load(std::memory_order_acquire);
  order.rank_is_gone = message.number == static_cast<std::uint64_t>(flight::FailureKind::kRankGone);
  static_assert(sizeof order.why >= sizeof message.text);
  memcpy(order.why, message.text, sizeof message.text);
  order.why[sizeof message.text - 1] = 0;
  newest.store(&order, std::memory_order_release);
}

void forget() { newest.store(nullptr, std::memory_order_release); }

void shorten_torchs_wait() {
  const char* wanted = getenv("DSHANG_ON_HANG");
  if (!wanted || strcasecmp(wanted, "fail") != 0) return;
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    if (getenv(name)) {
      setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", kDumpMilliseconds, 0);
      return;
    }
  }
}

}  // namespace dshang::interpose::ordered_failure

namespace dshang::interpose::runtime {

const Failure* failure() { return ordered_failure::newest.load(std::memory_order_acquire); }

}  // namespace dshang::interpose::runtime
