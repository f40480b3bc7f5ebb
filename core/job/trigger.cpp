#include "core/job/trigger.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/flight/hash.h"
#include "core/job/crossed.h"
#include "core/job/model.h"

namespace dshang::job {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr unsigned kPromptComparisons =
    60;  // of facts, one a second; later ones come slowly: a job may note much
constexpr std::size_t kPlacePairs = 4096;  // pairs of places remembered
constexpr std::uint64_t kLastPlacesNs = 512 * kSecond;
constexpr double kLongestSettle =
    3;  // times Params::settle: then the detectors run although records still arrive
constexpr double kStillSeconds =
    1;                             // somebody waits, and nothing was recorded of anybody for Params::settle:
constexpr double kStillUntil = 5;  // looked at once a second, until then
// A difference settles so long without a new record: what a rank does on it, it does at once.
constexpr std::uint64_t kSettleNs = kSecond / 5;
// Hosts that wait for their whole devices, in different communicators: a circle, or one step of many; looked
// at ever more rarely.
constexpr double kCrossedSeconds = 0.2;
constexpr std::uint64_t kFirstCrossedNs = kSecond, kLastCrossedNs = 64 * kSecond;
constexpr std::uint64_t kPeriod = 10 * kSecond;  // between looks at a job that goes on

// One communicator: the calls that not all members have made yet.
struct Front {
  struct Pending {
    std::uint64_t signature = 0, place = 0;
    std::int32_t made_by = 0;
  };
  std::int32_t size = 0;
  Seq completed = 0;            // all members have made calls up to here
  std::deque<Pending> pending;  // pending[i] is call completed + 1 + i
  bool differs = false;
};

struct Cursor {
  std::uint64_t next = 0;  // ring number of the next call to look at
  std::uint64_t visits = 0, failures = 0, exceptions = 0, facts = 0;
  bool dead = false;
  std::vector<std::uint64_t> ids;  // of the communicators by index
  std::uint64_t memory = 0, memory_steps = 0, next_growth = 48;  // steps after which growth may show
  std::uint64_t highest = 0;                                     // peak of a step, bytes
};

// Whether memory should be looked at: a new peak near the end of the device, or enough steps to see it grow.
bool look_at_memory(const RankRecords& records, Cursor& cursor) {
  bool due = false;
  const auto& steps = records.memory_steps;
  for (cursor.memory = std::max(cursor.memory, steps.first()); cursor.memory < steps.end(); ++cursor.memory) {
    const MemoryStep& step = steps.at(cursor.memory);
    if (step.time_ns == 0 || step.step == kNoStep) continue;
    if (++cursor.memory_steps >= cursor.next_growth)
      due = true, cursor.next_growth = cursor.memory_steps + cursor.memory_steps / 2;
    std::uint64_t peak = step.allocated_peak, total = step.device_total;
    if (peak == flight::kUnknownBytes || total == flight::kUnknownBytes || peak < total / 10 * 9) continue;
    if (peak > cursor.highest + total / 100) due = true, cursor.highest = peak;
  }
  return due;
}

// Since when the process is creating a communicator, or has none although it is one of several ranks (asked
// for only while nobody has one: later it is a helper); 0 = neither.
std::uint64_t without_communicator_since(const RankRecords& records, bool nobody_has_one) {
  std::uint64_t since = nobody_has_one && records.world_size > 1 ? records.start_ns : 0;
  for (const Comm& comm : records.comms) {
    if (comm.state == flight::CommState::kCreating && (since == 0 || comm.begin_ns < since))
      since = comm.begin_ns;
  }
  return since;
}

// Nobody waits, and yet nothing is recorded of anybody: they may all wait on the host, which is seen from
// outside only.
bool all_are_still(const Job& job, std::uint64_t last_record_ns) {
  double still = static_cast<double>(job.journal.now_ns - std::min(last_record_ns, job.journal.now_ns)) / 1e9;
  return last_record_ns && still >= job.params.stall_after / 2 && job.processes.size() > 1 &&
         std::all_of(job.processes.begin(), job.processes.end(), [](const auto& process) {
           return !process->journal.death && !process->journal.samples.empty();
         });
}

}  // namespace

struct Trigger::State {
  std::map<const Process*, Cursor> cursors;
  std::unordered_map<std::uint64_t, Front> fronts;
  std::uint64_t difference_ns = 0;     // when something worth explaining was first seen
  std::uint64_t records_when_due = 0;  // `records` when the job was last looked at because it goes on
  std::uint64_t last_record_ns = 0;
  std::uint64_t last_run_ns = 0;
  std::uint64_t waiting_since_ns = 0;  // somebody waits for somebody since
  std::uint64_t records_at_run = 0, records = 0;
  bool memory = false;       // look_at_memory()
  bool compare = false;      // facts or trace modes are new since the last run
  unsigned comparisons = 0;  // runs for their sake
  bool recheck = false;      // a finding is likely: keep looking as time passes
  bool suspicious = false;
  const Names* names = nullptr;
  std::unordered_set<std::uint64_t> place_pairs;  // places that met in calls with equal arguments
  bool new_places = false;
  std::uint64_t places_ns = 0,
                places_wait_ns = 0;  // whether they are crossed is looked at then, and ever more rarely

  void look_at_calls(const Process& process, Cursor& cursor);
  void look_at_call(const Process& process, const Cursor& cursor, const Call& call);
  void look_at_facts(const RankRecords& records, Cursor& cursor);
  bool someone_waits(const Job& job, std::uint64_t* since) const;
  bool may_be_crossed(const Job& job);
  std::uint64_t crossed_ns = 0, crossed_wait_ns = kFirstCrossedNs;  // next look at such hosts
};

void Trigger::State::look_at_call(const Process& process, const Cursor& cursor, const Call& call) {
  if (call.torn || call.number == 0 || call.comm >= cursor.ids.size() || cursor.ids[call.comm] == 0) return;
  const auto& ops = process.records.ops;
  if (call.op >= ops.size() || !(ops[call.op].traits & flight::kOpCollective)) return;
  Front& front = fronts[cursor.ids[call.comm]];
  front.size = process.records.comms[call.comm].size;
  if (call.number <= front.completed) return;
  std::uint64_t at = call.number - front.completed - 1;
  if (at > 2 * flight::kCallEntries)
    return;  // a member that was overwritten far behind: the detectors say so
  if (front.pending.size() <= at) front.pending.resize(at + 1);
  RankView rank;
  rank.process = &process;
  std::uint64_t here = signature(rank, call);
  Front::Pending& pending = front.pending[at];
  if (pending.made_by++ == 0) {
    pending.signature = here;
    pending.place = origin_of(*names, process.records, call);
  } else if (pending.signature != here) {
    front.differs = true;
  } else if (std::uint64_t place = origin_of(*names, process.records, call);
             place && pending.place && place != pending.place) {
    auto [low, high] = std::minmax(place, pending.place);
    if (place_pairs.size() < kPlacePairs)
      new_places = place_pairs.insert(flight::mix(low, high)).second || new_places;
  }
  while (!front.pending.empty() && front.pending.front().made_by >= front.size) {
    front.pending.pop_front();
    ++front.completed;
  }
}

void Trigger::State::look_at_calls(const Process& process, Cursor& cursor) {
  const RankRecords& r = process.records;
  cursor.ids.resize(r.comms.size());
  for (std::size_t i = 0; i < r.comms.size(); ++i) cursor.ids[i] = r.comms[i].id;
  std::uint64_t n = std::max(cursor.next, r.calls.first());
  for (; n < r.calls.end(); ++n) {
    const Call& call = r.calls.at(n);
    // A group that is not accepted yet, or a communicator without identity: look again at the next poll.
    bool undecided = !call.torn && !(call.flags & flight::kCallFailed) &&
                     ((call.flags & flight::kCallGroupPending) || call.comm >= cursor.ids.size() ||
                      cursor.ids[call.comm] == 0);
    bool stale = n + 1024 < r.calls.end();
    if (undecided && !stale) break;
    ++records;
    if (!(call.flags & flight::kCallFailed)) look_at_call(process, cursor, call);
  }
  cursor.next = n;
}

// Facts are compared as soon as they are there, traces when they break; neither says that somebody will wait.
void Trigger::State::look_at_facts(const RankRecords& r, Cursor& cursor) {
  if (r.facts.end() > cursor.facts) cursor.facts = r.facts.end(), compare = true;
  for (std::uint64_t n = std::max(cursor.visits, r.visits.first()); n < r.visits.end() && !compare; ++n) {
    compare = r.visits.at(n).kind == flight::VisitKind::kTraceMode;
  }
}

// Whether a living process has a call outstanding; `since`: the oldest such call's start.
bool Trigger::State::someone_waits(const Job& job, std::uint64_t* since) const {
  *since = 0;
  bool nobody_has_one = std::all_of(job.processes.begin(), job.processes.end(),
                                    [](const auto& p) { return p->records.comms.empty(); });
  for (const auto& process : job.processes) {
    if (process->journal.death) continue;
    std::uint64_t creating = without_communicator_since(process->records, nobody_has_one);
    if (creating && (*since == 0 || creating < *since)) *since = creating;
    const auto& calls = process->records.calls;
    std::uint64_t first = std::max(calls.first(), calls.end() > 256 ? calls.end() - 256 : 0);
    for (std::uint64_t n = first; n < calls.end(); ++n) {
      const Call& call = calls.at(n);
      if (call.torn || !is_outstanding(call)) continue;
      if (*since == 0 || call.enter_ns < *since) *since = call.enter_ns;
      break;
    }
  }
  return *since != 0;
}

// Whether ranks have waited for a moment in different communicators, each with a thread that waits for its
// device.
bool Trigger::State::may_be_crossed(const Job& job) {
  std::uint64_t now = job.journal.now_ns, first = 0;
  bool differ = false;
  if (now < crossed_ns) return false;
  for (const auto& process : job.processes) {
    const RankRecords& r = process->records;
    bool in_sync = std::any_of(r.threads.begin(), r.threads.end(), [&](const Thread& thread) {
      return thread.inside && job.names.text(thread.inside) == "cudaDeviceSynchronize" &&
             thread.inside_since_ns + static_cast<std::uint64_t>(kCrossedSeconds * 1e9) <= now;
    });
    if (!in_sync || process->journal.death) continue;
    for (std::uint64_t n =
             std::max(r.calls.first(), r.calls.end() - std::min<std::uint64_t>(r.calls.end(), 256));
         n < r.calls.end(); ++n) {
      const Call& call = r.calls.at(n);
      if (call.torn || call.comm >= r.comms.size() || !is_outstanding(call)) continue;
      std::uint64_t id = r.comms[call.comm].id;
      differ = differ || (first != 0 && id != first);
      first = id;
      break;
    }
  }
  if (!differ) return false;
  crossed_ns = now + crossed_wait_ns;
  crossed_wait_ns = std::min(2 * crossed_wait_ns, kLastCrossedNs);
  return true;
}

Trigger::Trigger() : state_(std::make_unique<State>()) {}
Trigger::~Trigger() = default;

bool Trigger::suspicious() const { return state_->suspicious; }
bool Trigger::settling() const { return state_->difference_ns != 0 && !state_->recheck; }

bool Trigger::look(const Job& job) {
  State& s = *state_;
  std::uint64_t now = job.journal.now_ns;
  std::uint64_t before = s.records;
  s.names = &job.names;
  bool news = false;
  for (const auto& process : job.processes) {
    Cursor& cursor = s.cursors[process.get()];
    const RankRecords& r = process->records;
    s.look_at_calls(*process, cursor);
    s.records += r.visits.end() - std::min(cursor.visits, r.visits.end());
    s.look_at_facts(r, cursor);
    s.memory = look_at_memory(r, cursor) || s.memory;
    cursor.visits = r.visits.end();
    if (process->journal.death && !cursor.dead) cursor.dead = news = true;
    if (r.alloc_failures.end() > cursor.failures) cursor.failures = r.alloc_failures.end(), news = true;
    if (r.exceptions.end() > cursor.exceptions) cursor.exceptions = r.exceptions.end(), news = true;
  }
  for (const auto& [id, front] : s.fronts) news = news || front.differs;
  if (s.records != before) s.last_record_ns = now;

  std::uint64_t since = 0;
  bool waits = s.someone_waits(job, &since);
  double waited = waits && now > since ? static_cast<double>(now - since) / 1e9 : 0;
  if (all_are_still(job, s.last_record_ns)) waited = std::max(waited, job.params.stall_after / 2);
  s.suspicious = waited > std::min(1.0, job.params.stall_after / 4);
  if (news && s.difference_ns == 0) s.difference_ns = now;

  auto settle = static_cast<std::uint64_t>(job.params.settle * 1e9);
  bool stable = now - s.last_record_ns >= kSettleNs;
  bool long_enough =
      s.difference_ns &&
      now - s.difference_ns >= static_cast<std::uint64_t>(kLongestSettle * static_cast<double>(settle));
  if (s.difference_ns && (stable || long_enough)) {
    // Explained once; what follows on it is looked at again as records arrive and time passes.
    bool first = !s.recheck;
    bool due = now - s.last_run_ns >= kSecond / 2;
    if (!first && !due) return false;
    s.recheck = true;
    bool changed = s.records != s.records_at_run || news;
    if (!first && !changed && now - s.last_run_ns < kSecond) return false;
    s.records_at_run = s.records;
    s.last_run_ns = now;
    return true;
  }
  bool settled = s.difference_ns == 0;  // else a difference is told first, when it is told whole
  if (s.compare && settled &&
      now - s.last_run_ns >= (s.comparisons < kPromptComparisons ? 1 : 30) * kSecond) {
    s.compare = false;
    ++s.comparisons;
    s.last_run_ns = now;
    return true;
  }
  if (s.memory && settled && now - s.last_run_ns >= kSecond) {
    s.memory = false;
    s.last_run_ns = now;
    return true;
  }
  if (s.new_places)
    s.new_places = false, s.places_wait_ns = kSecond / 2, s.places_ns = now + s.places_wait_ns;
  if (s.places_ns && now >= s.places_ns) {
    s.places_wait_ns *= 2;
    s.places_ns = s.places_wait_ns <= kLastPlacesNs ? now + s.places_wait_ns : 0;
    s.last_run_ns = now;
    return true;
  }
  // Nothing differs: only a stall can be found, and only time decides it.
  bool stall = waited >= job.params.stall_after / 2;
  if ((stall || s.recheck) && now - s.last_run_ns >= kSecond) {
    s.last_run_ns = now;
    s.recheck = stall;
    return true;
  }
  // A circle of ranks that wait for each other is there as soon as nothing moves, and soon seen from outside.
  bool still = waited >= kStillSeconds && waited < kStillUntil && stable && now - s.last_run_ns >= kSecond;
  // What is slow or tight, but goes on.
  bool goes_on = s.records != s.records_when_due && now - s.last_record_ns < kPeriod;
  bool due = goes_on && s.last_run_ns && now - s.last_run_ns >= kPeriod;
  if (s.last_run_ns == 0) s.last_run_ns = now, s.records_when_due = s.records;
  if (!still && !due && !(waits && stable && s.may_be_crossed(job))) return false;
  s.records_when_due = s.records;
  s.last_run_ns = now;
  return true;
}

}  // namespace dshang::job
