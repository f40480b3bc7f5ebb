// The order to fail, as one process keeps it.
#include <stdlib.h>

#include <cstring>
#include <string>

#include "catch.h"
#include "fakes.h"
#include "interpose/runtime/ordered_failure.h"

using namespace dshang;
using namespace dshang::interpose;

namespace {

flight::Message order(flight::FailureKind kind, const char* why) {
  flight::Message message{};
  message.kind = flight::MessageKind::kFail;
  message.number = static_cast<std::uint64_t>(kind);
  std::strncpy(message.text, why, sizeof message.text - 1);
  return message;
}

constexpr const char* kWait = "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC";

std::string wait_of(const char* on_hang, const char* rank, const char* given) {
  on_hang ? setenv("DSHANG_ON_HANG", on_hang, 1) : unsetenv("DSHANG_ON_HANG");
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) unsetenv(name);
  if (rank) setenv(rank, "0", 1);
  given ? setenv(kWait, given, 1) : unsetenv(kWait);
  ordered_failure::shorten_torchs_wait();
  const char* now = getenv(kWait);
  return now ? now : "";
}

}  // namespace

TEST_CASE("an order covers the communicators that there are") {
  fakes::Recorder recorder;
  CHECK(runtime::failure() == nullptr);
  std::uint32_t index;
  recorder.writer().open_comm(&index);
  ordered_failure::take(recorder.writer(), order(flight::FailureKind::kDisagreement, "they disagree"));
  const runtime::Failure* first = runtime::failure();
  REQUIRE(first);
  CHECK(first->comms == 1);
  CHECK_FALSE(first->rank_is_gone);
  CHECK(first->why == std::string("they disagree"));

  recorder.writer().open_comm(&index);
  ordered_failure::take(recorder.writer(), order(flight::FailureKind::kRankGone, "one is gone"));
  CHECK(runtime::failure()->comms == 2);
  CHECK(runtime::failure()->rank_is_gone);
  CHECK(first->why == std::string("they disagree"));  // whoever was given it may keep it

  for (unsigned i = 0; i < ordered_failure::kOrders; ++i)
    ordered_failure::take(recorder.writer(), order(flight::FailureKind::kDisagreement, "again"));
  CHECK(runtime::failure()->why == std::string("again"));
  ordered_failure::forget();
  CHECK(runtime::failure() == nullptr);
}

TEST_CASE("torch's wait is shortened only where that is wanted and nobody said otherwise") {
  CHECK(wait_of("fail", "RANK", nullptr) == ordered_failure::kDumpMilliseconds);
  CHECK(wait_of("FAIL", "SLURM_PROCID", nullptr) == ordered_failure::kDumpMilliseconds);
  CHECK(wait_of("fail", "RANK", "15000") == "15000");
  CHECK(wait_of("fail", nullptr, nullptr) == "");
  CHECK(wait_of("report", "RANK", nullptr) == "");
  CHECK(wait_of("exec:fail", "RANK", nullptr) == "");
  CHECK(wait_of(nullptr, "RANK", nullptr) == "");
  for (const char* name : {"DSHANG_ON_HANG", "RANK", kWait}) unsetenv(name);
}
