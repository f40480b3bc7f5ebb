#include "monitor/as_of.h"

#include <algorithm>

namespace dshang::monitor {
namespace {

// The records up to the last one that is not later.  They are numbered in the order in which they were begun,
// so times may be out of order by what two threads are apart.
template <typename T, typename Time>
job::Window<T> until(const job::Window<T>& all, std::uint64_t moment, Time time_of) {
  std::uint64_t end = all.end();
  while (end > all.first() && time_of(all.at(end - 1)) > moment) --end;
  job::Window<T> kept;
  kept.drop_before(all.first());
  for (std::uint64_t n = all.first(); n < end; ++n) kept.push(all.at(n));
  return kept;
}

template <typename T>
job::Window<T> until(const job::Window<T>& all, std::uint64_t moment) {
  return until(all, moment, [](const T& record) { return record.time_ns; });
}

void forget_later(std::uint64_t moment, std::uint64_t* time, std::uint32_t* flags, std::uint32_t flag) {
  if (*time <= moment) return;
  *time = 0;
  *flags &= ~flag;
}

template <typename T>
std::uint64_t newest(const job::Window<T>& all) {
  std::uint64_t time = 0;
  for (std::uint64_t n = all.first(); n < all.end(); ++n) time = std::max(time, all.at(n).time_ns);
  return time;
}

void restore_calls(const job::RankRecords& all, std::uint64_t moment, job::RankRecords* records) {
  records->calls = until(all.calls, moment, [](const job::Call& call) { return call.enter_ns; });
  for (std::uint64_t n = records->calls.first(); n < records->calls.end(); ++n) {
    job::Call& call = records->calls.at(n);
    std::uint32_t before = call.flags;
    forget_later(moment, &call.return_ns, &call.flags, flight::kCallReturned | flight::kCallFailed);
    forget_later(moment, &call.started_ns, &call.flags, flight::kCallStarted);
    forget_later(moment, &call.done_ns, &call.flags, flight::kCallDone);
    if (before & ~call.flags & flight::kCallReturned) {
      call.result = 0;
      if (call.flags & flight::kCallInGroup) call.flags |= flight::kCallGroupPending;
    }
  }
}

void restore_comms(std::uint64_t moment, job::RankRecords* records) {
  auto later = [&](const job::Comm& comm) { return comm.begin_ns > moment; };
  records->comms.erase(std::find_if(records->comms.begin(), records->comms.end(), later),
                       records->comms.end());
  for (job::Comm& comm : records->comms) {
    if (comm.end_ns > moment) {
      comm.end_ns = 0;
      comm.state =
          comm.ready_ns ? flight::CommState::kReady : flight::CommState::kCreating;  // else it failed
    }
    if (comm.ready_ns > moment) {
      comm.ready_ns = 0;
      comm.state = flight::CommState::kCreating;
    }
    comm.calls = 0;
  }
  for (std::uint64_t n = records->calls.first(); n < records->calls.end(); ++n) {
    const job::Call& call = records->calls.at(n);
    if (call.comm >= records->comms.size() || call.op >= records->ops.size()) continue;
    bool collective = records->ops[call.op].traits & flight::kOpCollective;
    std::uint64_t& calls = records->comms[call.comm].calls;
    if (collective) calls = std::max(calls, call.number);
  }
  if (records->comms.empty()) {
    records->provisional = true;
    records->world_rank = 0;
  }
}

}  // namespace

job::RankRecords as_of(const job::RankRecords& all, std::uint64_t moment) {
  job::RankRecords records;
  records.pid = all.pid;
  records.rank = all.rank;
  records.local_rank = all.local_rank;
  records.world_size = all.world_size;
  records.restart_count = all.restart_count;
  records.provisional = all.provisional;
  records.pid_start_ticks = all.pid_start_ticks;
  records.job = all.job;
  records.net_namespace = all.net_namespace;
  records.pid_namespace = all.pid_namespace;
  records.start_ns = all.start_ns;
  records.start_real_ns = all.start_real_ns;
  records.host = all.host;
  records.ops = all.ops;
  records.visits = until(all.visits, moment);
  records.memory_steps = until(all.memory_steps, moment);
  records.alloc_failures = until(all.alloc_failures, moment);
  records.exceptions = until(all.exceptions, moment);
  records.stacks = until(all.stacks, moment);
  records.facts = until(all.facts, moment);
  records.comms = all.comms;
  records.world_rank = all.world_rank;
  restore_calls(all, moment, &records);
  restore_comms(moment, &records);
  records.threads = all.threads;
  for (job::Thread& thread : records.threads) {
    if (thread.inside_since_ns > moment) {
      thread.inside = 0;
      thread.inside_since_ns = 0;
    }
    thread.last_ns = std::min(thread.last_ns, moment);
  }
  std::copy(std::begin(all.live), std::end(all.live), records.live);
  std::copy(std::begin(all.peak), std::end(all.peak), records.peak);
  records.allocations = all.allocations;
  records.frees = all.frees;
  records.failures = all.failures;
  records.retries = all.retries;
  records.untracked = all.untracked;
  records.step = all.step;
  for (std::uint64_t n = records.visits.end(); n > records.visits.first(); --n) {
    const job::Visit& visit = records.visits.at(n - 1);
    if (visit.kind != flight::VisitKind::kStep || visit.torn) continue;
    records.step = visit.step;
    break;
  }
  records.python = all.python;
  records.poll_ns = std::min(all.poll_ns, moment);
  records.poll_stuck_ns = all.poll_stuck_ns > moment ? 0 : all.poll_stuck_ns;
  records.graph_launches = all.graph_launches;
  records.async_error = all.async_error;
  records.dropped_strings = all.dropped_strings;
  records.dropped_sites = all.dropped_sites;
  records.dropped_comms = all.dropped_comms;
  records.dropped_threads = all.dropped_threads;
  if (all.ending_ns <= moment) {
    records.ending = all.ending;
    records.ending_code = all.ending_code;
    records.ending_ns = all.ending_ns;
  }
  return records;
}

job::ProcessJournal as_of(const job::ProcessJournal& all, std::uint64_t moment) {
  job::ProcessJournal journal = all;
  if (journal.death && journal.death->time_ns > moment) journal.death.reset();
  auto later = [&](const job::HostSample& sample) { return sample.time_ns > moment; };
  journal.samples.erase(std::find_if(journal.samples.begin(), journal.samples.end(), later),
                        journal.samples.end());
  return journal;
}

std::uint64_t newest_time(const job::RankRecords& records) {
  std::uint64_t time = std::max({records.start_ns, records.poll_ns, records.ending_ns});
  time = std::max({time, newest(records.visits), newest(records.memory_steps), newest(records.alloc_failures),
                   newest(records.exceptions), newest(records.stacks), newest(records.facts)});
  for (std::uint64_t n = records.calls.first(); n < records.calls.end(); ++n) {
    const job::Call& call = records.calls.at(n);
    time = std::max({time, call.enter_ns, call.return_ns, call.started_ns, call.done_ns});
  }
  for (const job::Comm& comm : records.comms)
    time = std::max({time, comm.begin_ns, comm.ready_ns, comm.end_ns});
  for (const job::Thread& thread : records.threads)
    time = std::max({time, thread.inside_since_ns, thread.last_ns});
  return time;
}

std::uint64_t newest_time(const job::ProcessJournal& journal) {
  std::uint64_t time = std::max(journal.attach_ns, journal.death ? journal.death->time_ns : 0);
  for (const job::HostSample& sample : journal.samples) time = std::max(time, sample.time_ns);
  return time;
}

}  // namespace dshang::monitor
