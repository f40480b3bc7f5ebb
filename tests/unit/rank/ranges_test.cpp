#include "core/rank/ranges.h"

#include <errno.h>

#include "catch.h"
#include "core/rank/context.h"
#include "dshang.h"
#include "flight_memory.h"

using namespace dshang;
using flight::VisitKind;
using test::FlightMemory;

namespace {

constexpr std::uint32_t kDefault = 0, kDeepSpeed = 1;

// "+forward -forward", what was pushed and popped.
std::string phases(const FlightMemory& memory) {
  std::string said;
  for (std::uint64_t n = 0; n < memory.visits(); ++n) {
    const auto& visit = memory.visit(n);
    if (visit.kind == VisitKind::kPhasePush) said += " +" + memory.text(visit.phase);
    if (visit.kind == VisitKind::kPhasePop) said += " -" + memory.text(visit.phase);
  }
  return said.empty() ? said : said.substr(1);
}

}  // namespace

TEST_CASE("ranges that are a phase begin and end one, others only count") {
  FlightMemory memory;
  errno = 77;
  dshang_range_push(kDefault, nullptr);
  dshang_range_push(kDefault, "forward");
  dshang_range_push(kDefault, nullptr);
  dshang_range_pop(kDefault);
  dshang_range_pop(kDefault);
  dshang_range_pop(kDefault);
  dshang_range_pop(kDefault);  // one too many
  dshang_range_push(7, "forward");
  dshang_range_pop(7);
  CHECK(errno == 77);
  CHECK(phases(memory) == "+forward -forward");
}

TEST_CASE("the stacks of the domains are apart") {
  FlightMemory memory;
  dshang_range_push(kDefault, nullptr);
  dshang_range_push(kDeepSpeed, "backward");
  dshang_range_pop(kDefault);
  CHECK(phases(memory) == "+backward");
  dshang_range_pop(kDeepSpeed);
  CHECK(phases(memory) == "+backward -backward");
}

TEST_CASE("a phase that the thread is in already is not begun again") {
  FlightMemory memory;
  dshang_phase_push("backward");  // the probe said so
  dshang_range_push(kDeepSpeed, "backward");
  dshang_range_push(kDeepSpeed, "backward");
  dshang_range_pop(kDeepSpeed);
  dshang_range_pop(kDeepSpeed);
  CHECK(memory.text(rank::look_purpose(memory.writer).phase) == "backward");
  dshang_phase_pop();
  CHECK(phases(memory) == "+backward -backward");
}

TEST_CASE("what an exception left open is ended by the next forward") {
  FlightMemory memory;
  dshang_phase_push("epoch");
  dshang_range_push(kDefault, "forward");
  dshang_range_push(kDefault, nullptr);
  dshang_range_push(kDefault, "backward");  // an exception passes by
  dshang_range_push(kDefault, "forward");
  CHECK(phases(memory) == "+epoch +forward +backward -backward -forward +forward");
  dshang_range_pop(kDefault);
  CHECK(memory.text(rank::look_purpose(memory.writer).phase) == "epoch");
  for (int i = 0; i < 3; ++i) dshang_range_pop(kDefault);
  CHECK(memory.text(rank::look_purpose(memory.writer).phase) == "epoch");
  dshang_phase_pop();
}

TEST_CASE("deeper than the stack nothing is a phase") {
  FlightMemory memory;
  for (int i = 0; i < 64; ++i) dshang_range_push(kDefault, nullptr);
  dshang_range_push(kDefault, "optimizer");
  for (int i = 0; i < 65; ++i) dshang_range_pop(kDefault);
  CHECK(phases(memory) == "");
  dshang_range_push(kDefault, "optimizer");
  dshang_range_pop(kDefault);
  CHECK(phases(memory) == "+optimizer -optimizer");
}
