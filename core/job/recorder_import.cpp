#include "core/job/recorder_import.h"

#include <algorithm>
#include <set>

#include "core/job/finding.h"
#include "core/job/model.h"
#include "core/job/recorder_rank.h"

namespace dshang::job {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
// A file that is newer than this beyond what is in it was copied: its time says nothing.
constexpr std::uint64_t kLongestWait = 24 * 3600 * kSecond;

}  // namespace

std::string finished_fact(std::uint64_t comm_id) { return "pg.finished." + std::to_string(comm_id); }

struct RecorderImport::State {
  std::unique_ptr<Job> job = std::make_unique<Job>();
  std::map<Rank, RecorderRank> ranks;

  std::int32_t world_size() const;
  void borrow_ids();
  void know_counts();
  void align_collectives();
  void align_p2p();
  void set_times(std::uint64_t written_ns, std::vector<std::string>* remarks);
  void note_time_out();
  void remark(std::vector<std::string>* remarks) const;
  // The ranks that have this communicator, with their index of it.
  using Members = std::vector<std::pair<Rank, std::uint32_t>>;
  std::map<std::uint64_t, Members> communicators() const;
};

RecorderImport::RecorderImport() : state_(std::make_unique<State>()) {}
RecorderImport::~RecorderImport() = default;

void RecorderImport::add(Rank rank, const RecorderDump& dump) {
  state_->ranks.insert_or_assign(rank, rank_of_dump(rank, dump, state_->job->names));
}

std::int32_t RecorderImport::State::world_size() const {
  std::int32_t size = ranks.empty() ? 0 : ranks.rbegin()->first + 1;
  for (const auto& [rank, one] : ranks) {
    for (const Comm& comm : one.process->records.comms) size = std::max(size, comm.size);
  }
  return size;
}

std::map<std::uint64_t, RecorderImport::State::Members> RecorderImport::State::communicators() const {
  std::map<std::uint64_t, Members> all;
  for (const auto& [rank, one] : ranks) {
    const auto& comms = one.process->records.comms;
    for (std::uint32_t i = 0; i < comms.size(); ++i) {
      if (comms[i].id) all[comms[i].id].emplace_back(rank, i);
    }
  }
  return all;
}

// Which of its groups a process's number means, where its own dump does not show it: what the others say of
// this number, if they agree and the description names one group.
void RecorderImport::State::borrow_ids() {
  std::map<std::int64_t, std::set<std::string>> descriptions;
  for (const auto& [rank, one] : ranks) {
    for (const RecorderRank::Group& group : one.groups) {
      if (group.pg_id) descriptions[*group.pg_id].insert(group.description);
    }
  }
  for (auto& [rank, one] : ranks) {
    for (RecorderRank::Group& group : one.groups) {
      if (group.pg_id || !one.status || group.description.empty()) continue;
      auto same = [&](const RecorderRank::Group& other) { return other.description == group.description; };
      if (std::count_if(one.groups.begin(), one.groups.end(), same) != 1) continue;
      std::vector<std::int64_t> candidates;
      for (const auto& [id, names] : descriptions) {
        if (names.size() == 1 && *names.begin() == group.description) candidates.push_back(id);
      }
      if (candidates.size() == 1) group.pg_id = candidates[0];
    }
  }
}

// How many collectives a rank has made on a communicator of which its dump has none.
void RecorderImport::State::know_counts() {
  for (const auto& [id, members] : communicators()) {
    bool mixed = false, waited_for = false,
         coalesced = false;  // mixed: the status counts sends and receives too
    std::int64_t newest = 0;
    for (auto [rank, index] : members) {
      const RecorderRank::Group& group = ranks.at(rank).groups[index];
      mixed = mixed || group.p2p;
      coalesced = coalesced || group.coalesced;
      waited_for = waited_for || !group.collectives.empty();
      newest = std::max(newest, group.last_seq.value_or(0));
    }
    for (auto [rank, index] : members) {
      RecorderRank& one = ranks.at(rank);
      const RecorderRank::Group& group = one.groups[index];
      Comm& comm = one.process->records.comms[index];
      const RecorderStatus* status = nullptr;
      if (group.pg_id && one.status && one.status->count(*group.pg_id))
        status = &one.status->at(*group.pg_id);
      bool counts = !mixed && !coalesced;  // sequence ids are numbers of collectives
      if (status && counts && status->completed > 0) {
        NameId key = job->names.name(finished_fact(comm.id));
        one.process->records.facts.push({0, key, job->names.name(std::to_string(status->completed))});
      }
      if (!group.collectives.empty()) continue;
      std::optional<std::int64_t> made;
      if (group.last_seq) {
        made = *group.last_seq;
      } else if (status && !mixed) {
        made = status->enqueued;
      } else if (one.from_the_start) {
        made = 0;
      } else if (!waited_for) {
        made = newest;  // of no account: nobody has a collective there
      }
      if (!made) comm.id = 0;  // nothing may rest on it
      if (made) comm.calls = static_cast<std::uint64_t>(std::max<std::int64_t>(0, *made));
    }
  }
}

// Where calls share a sequence id, counts and ids drift apart: all ranks count from the same id then, the
// first that each of them still has.
void RecorderImport::State::align_collectives() {
  for (const auto& [id, members] : communicators()) {
    std::uint64_t first = 0;
    bool coalesced = false;
    for (auto [rank, index] : members) {
      const RecorderRank::Group& group = ranks.at(rank).groups[index];
      coalesced = coalesced || group.coalesced;
      if (!group.collectives.empty()) first = std::max(first, group.collectives.front().seq);
    }
    for (auto [rank, index] : members) {
      RecorderRank& one = ranks.at(rank);
      const auto& calls = one.groups[index].collectives;
      if (calls.empty()) continue;
      Window<Call>& window = one.process->records.calls;
      auto at = std::find_if(calls.begin(), calls.end(),
                             [&](const RecorderRank::Numbered& call) { return call.seq >= first; });
      if (at == calls.end()) --at;
      std::uint64_t now = window.at(at->n).number;
      for (const RecorderRank::Numbered& call : calls) {
        if (coalesced) window.at(call.n).number += at->seq - now;
      }
      one.process->records.comms[index].calls = window.at(calls.back().n).number;
    }
  }
}

// Sends and receives of a pair have no number in common.  Counted from the start where a dump begins there;
// else from the first that is outstanding on either side, because what is done before it is done on both.
void RecorderImport::State::align_p2p() {
  for (const auto& [id, members] : communicators()) {
    std::map<std::int32_t, std::pair<Rank, std::uint32_t>> at_position;
    for (auto member : members) {
      at_position[ranks.at(member.first).process->records.comms[member.second].rank] = member;
    }
    for (const auto& [position, member] : at_position) {
      RecorderRank& sender = ranks.at(member.first);
      for (auto at = sender.p2p.lower_bound({member.second, true, INT32_MIN});
           at != sender.p2p.end() && std::get<0>(at->first) == member.second; ++at) {
        auto other = at_position.find(std::get<2>(at->first));
        if (other == at_position.end()) continue;
        RecorderRank& receiver = ranks.at(other->second.first);
        auto theirs = receiver.p2p.find({other->second.second, false, position});
        if (theirs == receiver.p2p.end()) continue;
        auto done_of = [](const RecorderRank& one, const std::vector<std::uint64_t>& list) {
          const Window<Call>& calls = one.process->records.calls;
          auto open =
              std::find_if(list.begin(), list.end(), [&](std::uint64_t n) { return !is_done(calls.at(n)); });
          return static_cast<std::uint64_t>(open - list.begin());
        };
        if (sender.from_the_start && receiver.from_the_start) continue;
        std::uint64_t sent = done_of(sender, at->second), received = done_of(receiver, theirs->second);
        std::uint64_t base = sender.from_the_start     ? sent
                             : receiver.from_the_start ? received
                                                       : std::max(sent, received);
        auto shift = [&](RecorderRank& one, const std::vector<std::uint64_t>& list, std::uint64_t done) {
          for (std::uint64_t n : list) one.process->records.calls.at(n).number += base - done;
        };
        shift(sender, at->second, sent);
        shift(receiver, theirs->second, received);
      }
    }
  }
}

void RecorderImport::State::set_times(std::uint64_t written_ns, std::vector<std::string>* remarks) {
  std::uint64_t oldest = UINT64_MAX, newest = 0;
  for (const auto& [rank, one] : ranks) {
    if (one.oldest_ns) oldest = std::min(oldest, one.oldest_ns);
    newest = std::max(newest, one.newest_ns);
  }
  if (oldest == UINT64_MAX) oldest = newest = written_ns;
  job->journal.start_ns = job->journal.start_real_ns = oldest;
  job->journal.now_ns = newest;
  bool written_then = written_ns >= newest && written_ns - newest <= kLongestWait;
  if (written_then) {
    job->journal.now_ns = written_ns;
  } else {
    job->journal.now_ns = newest + static_cast<std::uint64_t>((job->params.stall_after + 1) * 1e9);
    remarks->push_back(
        "the dumps do not say when they were made, and the times of their files do not fit: whoever waits is "
        "taken to "
        "have waited for longer than the threshold");
  }
  for (auto& [rank, one] : ranks) {
    RankRecords& records = one.process->records;
    records.start_ns = records.start_real_ns = oldest;
    for (std::size_t i = 0; i < records.comms.size(); ++i) {
      records.comms[i].begin_ns = records.comms[i].ready_ns =
          oldest + i;  // the order in which they were made
    }
  }
}

// The shortest of the groups: it is what ends the job.
void RecorderImport::State::note_time_out() {
  std::int64_t least = 0;
  for (const auto& [rank, one] : ranks) {
    if (one.least_timeout_ms && (least == 0 || one.least_timeout_ms < least)) least = one.least_timeout_ms;
  }
  if (least == 0) return;
  NameId key = job->names.name("pg.timeout_seconds"), value = job->names.name(std::to_string(least / 1000));
  for (auto& [rank, one] : ranks) one.process->records.facts.push({job->journal.start_ns, key, value});
}

void RecorderImport::State::remark(std::vector<std::string>* remarks) const {
  std::vector<Rank> no_sites, active, overwritten, undescribed;
  std::size_t left_out = 0;
  bool p2p = false, coalesced = false;
  std::set<std::string> versions;
  for (const auto& [rank, one] : ranks) {
    versions.insert(one.version);
    if (!one.process->records.calls.empty()) {
      if (!one.has_frames) no_sites.push_back(rank);
      if (one.only_active) active.push_back(rank);
      if (!one.from_the_start && !one.only_active) overwritten.push_back(rank);
    }
    if (one.without_group) undescribed.push_back(rank), left_out += one.without_group;
    for (const auto& group : one.groups) {
      p2p = p2p || (group.p2p && !one.from_the_start);
      coalesced = coalesced || group.coalesced;
    }
  }
  std::string list;
  for (const std::string& version : versions) list += (list.empty() ? "" : ", ") + version;
  remarks->push_back("read from PyTorch Flight Recorder dumps (format " + list +
                     "): they have no steps, modules, reductions, roots, memory, host activity or endings");
  auto say = [&](const std::vector<Rank>& which, const std::string& what) {
    if (!which.empty()) remarks->push_back(ranks_text(which) + ": " + what);
  };
  say(no_sites, "the dump has no frames, so no call site is known");
  say(active, "the dump has only calls that had not finished");
  say(overwritten, "older calls were overwritten in the recorder's ring");
  say(undescribed, std::to_string(left_out) +
                       " calls are of process groups that the dump does not describe, or "
                       "describes without this rank; they are left out");
  if (p2p) {
    remarks->push_back(
        "sends and receives of a pair are matched from the first that is outstanding, because older ones "
        "are not in the dumps");
  }
  if (coalesced) {
    remarks->push_back(
        "calls of coalesced groups are counted one by one: their numbers run ahead of the recorder's "
        "sequence ids");
  }
}

std::unique_ptr<Job> RecorderImport::finish(std::uint64_t written_ns, std::vector<std::string>* remarks) {
  State& s = *state_;
  s.borrow_ids();
  s.know_counts();
  s.align_collectives();
  s.align_p2p();
  s.remark(remarks);
  s.set_times(written_ns, remarks);
  s.note_time_out();
  std::int32_t world_size = s.world_size();
  for (auto& [rank, one] : s.ranks) {
    one.process->records.world_size = world_size;
    s.job->processes.push_back(std::move(one.process));
  }
  s.ranks.clear();
  return std::move(s.job);
}

}  // namespace dshang::job
