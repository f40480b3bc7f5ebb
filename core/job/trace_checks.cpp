#include "core/job/trace_checks.h"

#include <optional>

namespace dshang::job {
namespace {

constexpr std::size_t kMostBroadcasts = 6;  // three checks of two

// What a stack says of a broadcast.
enum class From { kUnknown, kTrace, kElsewhere };

bool is_method(std::string_view qualified, std::string_view name) {
  if (!qualified.ends_with(name)) return false;
  return qualified.size() == name.size() || qualified[qualified.size() - name.size() - 1] == '.';
}

From comes_from(const Names& names, SiteId site) {
  if (!site) return From::kUnknown;
  for (const FrameName& frame : names.site(site).frames) {
    if (!is_method(names.text(frame.function), "reset_step")) continue;
    if (names.text(frame.file).ends_with("/partitioned_param_coordinator.py")) return From::kTrace;
  }
  return From::kElsewhere;
}

struct Broadcast {
  std::uint64_t at = 0;  // in the ring
  const Call* call = nullptr;
  From from = From::kUnknown;
};

// The mode that begins behind these broadcasts, which nothing comes between.
std::optional<TraceMode> mode_after(const std::vector<Broadcast>& run) {
  auto count = [&run](std::size_t i) { return run[i].call->count; };
  bool with_lengths = run.size() % 2 == 0;
  for (std::size_t i = 0; i < run.size(); i += 2) with_lengths = with_lengths && count(i) == 1;
  std::size_t list = with_lengths ? 1 : 0, each = with_lengths ? 2 : 1;  // of the broadcasts of a check
  if (run.size() == each && count(list) == 0) return TraceMode::kRecord;
  bool three = run.size() == 3 * each && count(list) > 0 && count(list + each) == count(list + 2 * each);
  if (three) return TraceMode::kComplete;
  return std::nullopt;
}

class Runs {
 public:
  explicit Runs(std::vector<TraceCheck>& out) : out_(out) {}

  void add(const Broadcast& next) {
    bool follows = !run_.empty() && next.at == run_.back().at + 1 &&
                   next.call->comm == run_.back().call->comm && next.from == run_.back().from;
    if (!follows) end();
    run_.push_back(next);
  }

  void end() {
    if (!run_.empty() && run_.size() <= kMostBroadcasts) {
      if (std::optional<TraceMode> mode = mode_after(run_))
        out_.push_back({*mode, run_.front().at, run_.back().at + 1});
    }
    run_.clear();
  }

 private:
  std::vector<TraceCheck>& out_;
  std::vector<Broadcast> run_;
};

}  // namespace

std::vector<TraceCheck> trace_checks(const JobView& view, const RankView& rank) {
  std::vector<TraceCheck> checks;
  Runs runs(checks);
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    const Call& call = calls.at(n);
    bool fits = !call.torn && call.number != 0 && !(call.flags & flight::kCallFailed) &&
                call.dtype == flight::DType::kI64 && call.root_or_peer == 0 &&
                view.op_name(rank, call) == "broadcast";
    if (!fits) {
      runs.end();
      continue;
    }
    From from = comes_from(view.names(), call.site);
    if (from == From::kElsewhere) {
      runs.end();
    } else {
      runs.add({n, &call, from});
    }
  }
  runs.end();
  return checks;
}

}  // namespace dshang::job
