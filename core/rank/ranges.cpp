#include "core/rank/ranges.h"

#include <errno.h>
#include <string.h>

#include "core/rank/awake.h"
#include "core/rank/context.h"
#include "core/rank/pyframes.h"

namespace {

namespace rank = dshang::rank;

constexpr unsigned kDeepest = 64;

struct Ranges {
  std::uint32_t depth;   // may exceed kDeepest
  std::uint64_t phases;  // one bit a range, the outermost lowest: it began a phase
};

[[gnu::tls_model("initial-exec")]] thread_local Ranges ranges_of[rank::kRangeDomains];

bool begin_phase(const char* phase) {
  if (dshang::flight::Writer writer = rank::awake()) {
    std::uint32_t id = writer.string(phase);
    if (rank::look_purpose(writer).phase == id) return false;
    rank::push_phase(writer, id, rank::call_site(writer));
    return true;
  }
  return rank::remember_new_phase(phase);
}

void end_phase() {
  if (dshang::flight::Writer writer = rank::awake()) {
    rank::pop_phase(writer);
  } else {
    rank::forget_phase();
  }
}

void end_abandoned_phases() {
  for (Ranges& ranges : ranges_of) {
    for (; ranges.phases; ranges.phases &= ranges.phases - 1) end_phase();
  }
}

}  // namespace

extern "C" void dshang_range_push(std::uint32_t domain, const char* phase) {
  if (domain >= rank::kRangeDomains) return;
  int kept = errno;
  Ranges& ranges = ranges_of[domain];
  if (phase && strcmp(phase, "forward") == 0) end_abandoned_phases();
  std::uint32_t at = ranges.depth++;
  if (phase && at < kDeepest && begin_phase(phase)) ranges.phases |= std::uint64_t{1} << at;
  errno = kept;
}

extern "C" void dshang_range_pop(std::uint32_t domain) {
  if (domain >= rank::kRangeDomains) return;
  Ranges& ranges = ranges_of[domain];
  if (!ranges.depth) return;
  std::uint32_t at = --ranges.depth;
  if (at >= kDeepest || !(ranges.phases >> at & 1)) return;
  ranges.phases &= ~(std::uint64_t{1} << at);
  int kept = errno;
  end_phase();
  errno = kept;
}
