// Memory of the page: marks of steps, the peak of each rank, and what is known of what made it.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/job/device_memory.h"
#include "core/job/page_data.h"

namespace dshang::job {
namespace {

using flight::kUnknownBytes;
using flight::MemoryKind;

constexpr std::size_t kCurves = 32;  // ranks of which the steps are shown
constexpr std::size_t kPoints = 200;

std::uint64_t of(const std::uint64_t (&bytes)[flight::kMemoryKinds], MemoryKind kind) {
  return bytes[static_cast<unsigned>(kind)];
}

std::uint64_t pinned(const std::uint64_t (&bytes)[flight::kMemoryKinds]) {
  return of(bytes, MemoryKind::kHost) + of(bytes, MemoryKind::kRegistered);
}

// What a step needed of the device: what torch had allocated where that is known.
std::uint64_t need_of(const MemoryStep& step) {
  return step.allocated_peak != kUnknownBytes ? step.allocated_peak : on_device(step.peak);
}

std::uint64_t device_total(const JobView& view, const RankView& rank) {
  const auto& facts = rank.records().facts;
  for (std::uint64_t n = facts.end(); n-- > facts.first();) {
    if (view.names().text(facts.at(n).key) == "device.memory_total")
      return std::strtoull(view.names().text(facts.at(n).value).c_str(), nullptr, 10);
  }
  const auto& failures = rank.records().alloc_failures;
  for (std::uint64_t n = failures.end(); n-- > failures.first();) {
    if (failures.at(n).total != kUnknownBytes) return failures.at(n).total;
  }
  return 0;
}

PageJson kibibytes(std::uint64_t bytes) {
  return bytes == kUnknownBytes ? PageJson(nullptr) : PageJson(bytes / 1024);
}

struct RankMemory {
  std::size_t rank = 0;              // index into JobView::ranks
  const MemoryStep* peak = nullptr;  // the step that needed most
  std::uint64_t usual = 0;           // median need of its training steps, 0 = none is known
  std::uint64_t need = 0;            // of the peak; of the process's life where no step was marked
};

RankMemory memory_of(const JobView& view, std::size_t r) {
  RankMemory memory;
  memory.rank = r;
  std::vector<std::uint64_t> needs;
  const RankRecords& records = view.ranks[r].records();
  for (std::uint64_t n = records.memory_steps.first(); n < records.memory_steps.end(); ++n) {
    const MemoryStep& step = records.memory_steps.at(n);
    if (step.time_ns == 0) continue;
    // Periods without a step are as many as seconds went by: of equal ranks another number each.
    if (step.step != kNoStep) needs.push_back(need_of(step));
    if (!memory.peak || need_of(step) > need_of(*memory.peak)) memory.peak = &step;
  }
  memory.need = memory.peak ? need_of(*memory.peak) : on_device(records.peak);
  if (needs.size() > 1) {  // one step is no usual one
    auto middle = needs.begin() + static_cast<std::ptrdiff_t>(needs.size() / 2);
    std::nth_element(needs.begin(), middle, needs.end());
    memory.usual = *middle;
  }
  return memory;
}

// [time, step, allocated peak, reserved peak, device peak, device held, pinned], KiB; of many steps the one
// of each stretch that needed most.
PageJson curve_of(const JobView& view, const RankRecords& records) {
  const auto& steps = records.memory_steps;
  std::uint64_t stride = std::max<std::uint64_t>(1, (steps.size() + kPoints - 1) / kPoints);
  PageJson points = PageJson::array();
  for (std::uint64_t n = steps.first(); n < steps.end(); n += stride) {
    const MemoryStep* most = nullptr;
    for (std::uint64_t at = n; at < std::min(n + stride, steps.end()); ++at) {
      const MemoryStep& step = steps.at(at);
      if (step.time_ns != 0 && (!most || need_of(step) > need_of(*most))) most = &step;
    }
    if (!most) continue;
    points.push_back({page_time(view, most->time_ns), page_step(most->step), kibibytes(most->allocated_peak),
                      kibibytes(most->reserved_peak), kibibytes(on_device(most->peak)),
                      kibibytes(on_device(most->live)), kibibytes(pinned(most->peak))});
  }
  return points;
}

PageJson failure_json(const JobView& view, const AllocFailure& failure, PageTexts& texts, PageSites& sites) {
  return {{"at", page_time(view, failure.time_ns)},
          {"step", page_step(failure.step)},
          {"size", kibibytes(failure.size)},
          {"free", kibibytes(failure.free)},
          {"retried", failure.retried},
          {"phase", texts.number_of(view.names().text(failure.phase))},
          {"module", texts.number_of(view.names().text(failure.module))},
          {"site", sites.number_of(failure.site)}};
}

// Phase, module and batch of a peak.
PageJson cause_json(const JobView& view, const MemoryStep& step, PageTexts& texts) {
  PageJson batch = PageJson::array();
  for (std::uint32_t size : step.batch) {
    if (size) batch.push_back(size);
  }
  return {{"retries", step.retries},
          {"failures", step.failures},
          {"phase", texts.number_of(view.names().text(step.peak_phase))},
          {"module", texts.number_of(view.names().text(step.peak_module))},
          {"batch", std::move(batch)}};
}

bool has_anything(const JobView& view, const RankMemory& memory) {
  return memory.need > 0 || view.ranks[memory.rank].records().alloc_failures.size() > 0;
}

PageJson rank_json(const JobView& view, const RankMemory& memory, bool with_curve, PageTexts& texts,
                   PageSites& sites) {
  const RankView& rank = view.ranks[memory.rank];
  PageJson failures = PageJson::array();
  const auto& failed = rank.records().alloc_failures;
  for (std::uint64_t n = failed.first(); n < failed.end(); ++n) {
    if (failed.at(n).time_ns) failures.push_back(failure_json(view, failed.at(n), texts, sites));
  }
  PageJson json{{"rank", rank.rank},
                {"total", kibibytes(device_total(view, rank))},
                {"need", kibibytes(memory.need)},
                {"usual", kibibytes(memory.usual)},
                {"failures", std::move(failures)}};
  if (memory.peak) {
    json["peak_at"] = page_time(view, memory.peak->time_ns);
    json["peak_step"] = page_step(memory.peak->step);
    json["reserved"] = kibibytes(memory.peak->reserved_peak);
    json["of_torch"] = memory.peak->allocated_peak != kUnknownBytes;
    json["cause"] = cause_json(view, *memory.peak, texts);
  }
  if (with_curve) json["curve"] = curve_of(view, rank.records());
  return json;
}

}  // namespace

PageJson page_memory(const JobView& view, PageTexts& texts, PageSites& sites) {
  std::vector<RankMemory> all;
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    RankMemory memory = memory_of(view, r);
    if (has_anything(view, memory)) all.push_back(memory);
  }
  auto failed = [&](const RankMemory& m) { return view.ranks[m.rank].records().alloc_failures.size() > 0; };
  std::stable_sort(all.begin(), all.end(), [&](const RankMemory& a, const RankMemory& b) {
    return std::make_pair(failed(a), a.need) > std::make_pair(failed(b), b.need);
  });
  PageJson ranks = PageJson::array();
  for (std::size_t i = 0; i < all.size(); ++i)
    ranks.push_back(rank_json(view, all[i], i < kCurves, texts, sites));
  return ranks;
}

}  // namespace dshang::job
