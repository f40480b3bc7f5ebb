// What is new, what may still change, and what waits for its name.
#include "core/job/load.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "core/job/loader.h"

namespace dshang::job {

using flight::Ring;
using flight::SlotState;

namespace {

// Calls looked at again in one update; more are taken in turns.
constexpr std::size_t kOpenCallsPerUpdate = 8192;

constexpr std::uint32_t kGpuFlags = flight::kCallMarked | flight::kCallStartMarked;

bool unmarked(std::uint32_t flags) {
  return (flags & flight::kCallReturned) && !(flags & flight::kCallGroupPending) && !(flags & kGpuFlags);
}

}  // namespace

// Names what became readable since the last update, then the records that wait for it.
void Loader::name_waiting() {
  if (!ids_.refresh() && state_.unnamed.size() <= state_.unnamed_limit) return;
  std::erase_if(state_.unnamed, [&](LoadState::Unnamed& entry) {
    bool there = entry.visit ? records_.visits.has(entry.n) : records_.calls.has(entry.n);
    if (!there) return true;
    bool missing = false;
    NameId module = ids_.name(entry.module, &missing), phase = ids_.name(entry.phase, &missing);
    SiteId at = ids_.site(entry.site, &missing);
    if (entry.visit) {
      Visit& visit = records_.visits.at(entry.n);
      set(visit.module, module), set(visit.phase, phase), set(visit.site, at);
      set(visit.detail, ids_.name(entry.detail, &missing));
    } else {
      Call& call = records_.calls.at(entry.n);
      set(call.module, module), set(call.phase, phase), set(call.site, at);
    }
    return !missing;
  });
  state_.unnamed_limit = std::max<std::size_t>(65536, 2 * state_.unnamed.size());
}

void Loader::remember(const LoadState::Unnamed& entry) { state_.unnamed.push_back(entry); }

template <typename T>
void Loader::ring(Ring ring, Window<T>& window, std::vector<std::uint64_t>& open,
                  bool (Loader::*load)(std::uint64_t, T*)) {
  if (ring.first() > window.first()) window.drop_before(ring.first()), changed_ = true;
  std::erase_if(open, [&](std::uint64_t n) {
    if (!window.has(n)) return true;
    T item{};
    if (!(this->*load)(n, &item)) return false;
    window.at(n) = std::move(item);
    return changed_ = true;
  });
  for (std::uint64_t n = window.end(); n < ring.head; ++n) {
    T item{};
    if (!(this->*load)(n, &item)) open.push_back(n);
    window.push(item);
    changed_ = true;
  }
}

void Loader::calls() {
  Ring ring = reader_.calls();
  comms();  // after the head: every call before it then finds its communicator
  if (ring.first() > records_.calls.first()) records_.calls.drop_before(ring.first()), changed_ = true;
  refresh_calls();
  for (std::uint64_t n = records_.calls.end(); n < ring.head; ++n) {
    Call item;
    if (!call(n, &item)) state_.open_calls.push_back({n, unmarked(item.flags)});
    records_.calls.push(std::move(item));
    changed_ = true;
  }
}

void Loader::refresh_calls() {
  std::vector<LoadState::OpenCall>& open = state_.open_calls;
  std::erase_if(open, [&](const LoadState::OpenCall& entry) { return !records_.calls.has(entry.n); });
  std::size_t budget = std::min(open.size(), kOpenCallsPerUpdate);
  bool any_settled = false;
  for (std::size_t i = 0; i < budget; ++i) {
    LoadState::OpenCall& entry = open[(state_.open_cursor + i) % open.size()];
    Call& known = records_.calls.at(entry.n);
    bool is_settled;
    if (known.torn) {
      is_settled = call(entry.n, &known);
      changed_ = changed_ || !known.torn;
      entry.was_unmarked = unmarked(known.flags);
    } else {
      flight::CallProgress now;
      if (reader_.call_progress(entry.n, &now) == SlotState::kComplete) {
        set(known.flags, now.flags), set(known.result, now.result), set(known.return_ns, now.return_ns);
        set(known.started_ns, now.started_ns), set(known.done_ns, now.done_ns);
        // Marks are placed about when a call returns: one that had none a whole update ago gets none.
        is_settled = settled(now.flags) || (entry.was_unmarked && unmarked(now.flags));
        entry.was_unmarked = unmarked(now.flags);
      } else {
        is_settled = true;  // overwritten; what was read stays until the window moves on
      }
    }
    if (is_settled) entry.n = UINT64_MAX, any_settled = true;
  }
  state_.open_cursor = open.empty() ? 0 : (state_.open_cursor + budget) % open.size();
  if (any_settled)
    std::erase_if(open, [](const LoadState::OpenCall& entry) { return entry.n == UINT64_MAX; });
}

// A failure may be told later that its retry succeeded: the few there are, are read anew each time.
void Loader::alloc_failures() {
  Ring ring = reader_.alloc_failures();
  Window<AllocFailure>& window = records_.alloc_failures;
  if (ring.first() > window.first()) window.drop_before(ring.first()), changed_ = true;
  for (std::uint64_t n = window.first(); n < ring.head; ++n) {
    AllocFailure item;
    if (!window.has(n)) window.push(item), changed_ = true;
    alloc_failure(n, &item);
    AllocFailure& old = window.at(n);
    if (item.time_ns == 0 && old.time_ns != 0) continue;  // overwritten meanwhile
    bool same = std::tie(old.time_ns, old.retried, old.site, old.module, old.phase) ==
                std::tie(item.time_ns, item.retried, item.site, item.module, item.phase);
    changed_ = changed_ || !same;
    old = item;
  }
}

bool Loader::run() {
  identity();
  ops();
  std::uint64_t facts_before = records_.facts.end();
  bool facts_open = !state_.open_facts.empty();
  ring(reader_.facts(), records_.facts, state_.open_facts, &Loader::fact);
  if (facts_open || records_.facts.end() != facts_before) apply_environment_facts(records_, names_);
  name_waiting();
  ring(reader_.visits(), records_.visits, state_.open_visits, &Loader::visit);
  calls();
  ring(reader_.memory_steps(), records_.memory_steps, state_.open_memory_steps, &Loader::memory_step);
  alloc_failures();
  ring(reader_.exceptions(), records_.exceptions, state_.open_exceptions, &Loader::exception);
  ring(reader_.stacks(), records_.stacks, state_.open_stacks, &Loader::stack);
  threads();
  counters();
  return changed_;
}

bool update(RankRecords& records, const flight::Reader& reader, Names& names, LoadState& state) {
  if (!reader) return false;
  return Loader(records, reader, names, state).run();
}

void apply_environment_facts(const RankRecords& records, Names& names) {
  std::vector<std::string> endings = names.site_skip();
  for (std::uint64_t n = records.facts.first(); n < records.facts.end(); ++n) {
    const FactRecord& fact = records.facts.at(n);
    if (names.text(fact.key) != "env.DSHANG_SITE_SKIP") continue;
    std::string_view rest = names.text(fact.value);
    while (!rest.empty()) {
      std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view ending = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      while (ending.starts_with(' ')) ending.remove_prefix(1);
      while (ending.ends_with(' ')) ending.remove_suffix(1);
      if (ending.empty() || std::find(endings.begin(), endings.end(), ending) != endings.end()) continue;
      endings.emplace_back(ending);
    }
  }
  names.set_site_skip(std::move(endings));
}

}  // namespace dshang::job
