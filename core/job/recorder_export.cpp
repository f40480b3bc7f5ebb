#include "core/job/recorder_export.h"

#include <algorithm>

#include "core/job/recorder_words.h"
#include "core/job/recorder_write.h"

namespace dshang::job {

constexpr const char* kVersion = "2.10";
constexpr std::uint32_t kP2p = flight::kOpSend | flight::kOpRecv;

// One rank's dump.
class RecorderRankWriter {
 public:
  RecorderRankWriter(RecorderExport& job, const RankView& rank)
      : job_(job), rank_(rank), records_(rank.records()), of_comm_(records_.comms.size()) {
    for (std::size_t i = 0; i < job.view_.comms.size(); ++i) {
      const Member* member = job.view_.comms[i].member_of(index_of(rank));
      if (member) of_comm_[member->comm_index] = {i, true, 0, 0, 0, 0, false};
    }
  }

  std::string write();

 private:
  // What this rank did on one of its communicators, as far as the entries are written.
  struct Progress {
    std::size_t group = 0;  // of the view
    bool is_member = false;
    std::uint64_t collectives = 0, p2p = 0;            // sequence ids so far
    std::uint64_t done_collectives = 0, done_p2p = 0;  // newest that is done, all before it being so
    bool is_waiting = false;
  };

  std::size_t index_of(const RankView& rank) const {
    return static_cast<std::size_t>(&rank - job_.view_.ranks.data());
  }
  std::int64_t real_ns(std::uint64_t ns) const {
    return static_cast<std::int64_t>(ns - records_.start_ns + records_.start_real_ns);
  }
  bool is_written(const Call& call) const;
  void note_left_out(const Call& call);
  void groups();
  void entries();
  std::uint64_t p2p_group(std::uint64_t n) const;
  void call(const Call& call, bool new_launch);
  void group_end(std::uint64_t from, std::uint64_t to);
  void entry(const Progress& at, const std::string& name, bool is_p2p, bool is_done, const Call& call);
  void sizes(const char* key, const char* types_key, std::optional<std::uint64_t> count, flight::DType dtype);
  void frames(SiteId site);
  void status();
  void key(std::string_view name) { out_.text(name); }

  RecorderExport& job_;
  const RankView& rank_;
  const RankRecords& records_;
  std::vector<Progress> of_comm_;  // by the rank's communicators
  PickleWriter out_;
  std::map<SiteId, std::uint32_t> sites_;
  std::int64_t next_record_ = 0;
};

bool RecorderRankWriter::is_written(const Call& call) const {
  if (call.torn || call.number == 0 || (call.flags & flight::kCallFailed)) return false;
  if (call.comm >= of_comm_.size() || !of_comm_[call.comm].is_member) return false;
  std::uint32_t traits = job_.view_.op_traits(rank_, call);
  if (!(traits & (flight::kOpCollective | kP2p))) return false;
  return !recorder_op(job_.view_.op_name(rank_, call)).empty();
}

// Calls of communicators that the dump describes, by operations that it cannot name.
void RecorderRankWriter::note_left_out(const Call& call) {
  bool is_counted = !call.torn && call.number != 0 && !(call.flags & flight::kCallFailed) &&
                    (job_.view_.op_traits(rank_, call) & (flight::kOpCollective | kP2p));
  std::string op = job_.view_.op_name(rank_, call);
  if (is_counted && recorder_op(op).empty()) ++job_.left_out_[op];
}

void RecorderRankWriter::groups() {
  key("pg_config");
  out_.open_dictionary();
  for (const Progress& one : of_comm_) {
    if (!one.is_member) continue;
    const RecorderExport::Group& group = job_.groups_[one.group];
    out_.text(group.name);
    out_.open_dictionary();
    key("name"), out_.text(group.name);
    key("desc"), out_.text(group.description);
    key("ranks"), out_.text(group.ranks);
    out_.close_dictionary();
  }
  out_.close_dictionary();
}

void RecorderRankWriter::sizes(const char* sizes_key, const char* types_key,
                               std::optional<std::uint64_t> count, flight::DType dtype) {
  key(sizes_key);
  out_.open_list();
  if (count) {
    out_.open_list();
    out_.integer(static_cast<std::int64_t>(std::min<std::uint64_t>(*count, INT64_MAX)));
    out_.close_list();
  }
  out_.close_list();
  key(types_key);
  out_.open_list();
  if (count) out_.text(recorder_dtype(dtype));
  out_.close_list();
}

void RecorderRankWriter::frames(SiteId site) {
  key("frames");
  auto known = sites_.find(site);
  if (known != sites_.end()) return out_.again(known->second);
  const Names& names = job_.view_.names();
  out_.open_list();
  for (const FrameName& frame : names.site(site).frames) {
    out_.open_dictionary();
    key("name"), out_.text(names.text(frame.function));
    key("filename"), out_.text(names.text(frame.file));
    key("line"), out_.integer(frame.line);
    out_.close_dictionary();
  }
  out_.close_list();
  sites_.emplace(site, out_.keep());
}

void RecorderRankWriter::entry(const Progress& at, const std::string& name, bool is_p2p, bool is_done,
                               const Call& call) {
  out_.open_dictionary();
  frames(call.site);
  key("record_id"), out_.integer(next_record_++);
  key("pg_id"), out_.integer(static_cast<std::int64_t>(at.group));
  key("process_group");
  out_.text(job_.groups_[at.group].name), out_.text(job_.groups_[at.group].description), out_.pair();
  key("thread_name"), out_.text("");
  key("thread_id"), out_.text(std::to_string(call.thread));
  key("collective_seq_id"), out_.integer(static_cast<std::int64_t>(at.collectives));
  key("p2p_seq_id"), out_.integer(static_cast<std::int64_t>(at.p2p));
  key("op_id"), out_.integer(static_cast<std::int64_t>(at.collectives + at.p2p));
  key("profiling_name"), out_.text("nccl:" + name);
  key("time_created_ns"), out_.integer(real_ns(call.enter_ns));
  key("state"), out_.text(is_done ? "completed" : "scheduled");
  key("time_discovered_started_ns"), out_.none();
  key("time_discovered_completed_ns");
  is_done ? out_.integer(real_ns(std::max({call.done_ns, call.return_ns, call.enter_ns}))) : out_.none();
  key("retired"), out_.boolean(is_done);
  key("timeout_ms"), out_.integer(0);
  key("is_p2p"), out_.boolean(is_p2p);
}

void RecorderRankWriter::call(const Call& call, bool new_launch) {
  Progress& at = of_comm_[call.comm];
  std::uint32_t traits = job_.view_.op_traits(rank_, call);
  bool is_p2p = traits & kP2p, is_done = !is_outstanding(call);
  std::string op = job_.view_.op_name(rank_, call);
  std::string name(recorder_op(op));
  if (is_p2p) {
    if (new_launch) ++at.p2p;
    const auto& index = job_.groups_[at.group].index;
    auto mine = index.find(records_.comms[call.comm].rank), other = index.find(call.root_or_peer);
    std::string from = std::to_string(mine == index.end() ? -1 : mine->second),
                to = std::to_string(other == index.end() ? -1 : other->second);
    name += traits & flight::kOpSend ? " " + from + "->" + to : " " + from + "<-" + to;
    if (is_done && !at.is_waiting) at.done_p2p = at.p2p;
  } else {
    at.collectives = call.number;
    if (is_done && !at.is_waiting) at.done_collectives = at.collectives;
  }
  at.is_waiting = at.is_waiting || !is_done;
  entry(at, name, is_p2p, is_done, call);
  std::uint64_t one = std::max<std::uint64_t>(call.count, 1);
  std::uint64_t all = one * static_cast<std::uint64_t>(std::max(records_.comms[call.comm].size, 1));
  bool all_in = op == "reduce_scatter" || op == "all_to_all" || op == "scatter";
  bool all_out = op == "all_gather" || op == "all_to_all" || op == "gather";
  sizes("input_sizes", "input_dtypes", all_in ? all : one, call.dtype);
  sizes("output_sizes", "output_dtypes", all_out ? all : one, call.dtype);
  out_.close_dictionary();
}

// The end of a launch of several sends and receives.
void RecorderRankWriter::group_end(std::uint64_t from, std::uint64_t to) {
  bool all_done = true;
  for (std::uint64_t n = from; n < to; ++n) all_done = all_done && !is_outstanding(records_.calls.at(n));
  const Call& last = records_.calls.at(to - 1);
  entry(of_comm_[last.comm], "coalesced", true, all_done, last);
  sizes("input_sizes", "input_dtypes", std::nullopt, flight::DType::kNone);
  sizes("output_sizes", "output_dtypes", std::nullopt, flight::DType::kNone);
  out_.close_dictionary();
}

// The end of the sends and receives on one communicator that call n begins: those of its NCCL group behind
// it.
std::uint64_t RecorderRankWriter::p2p_group(std::uint64_t n) const {
  const Call& first = records_.calls.at(n);
  std::uint64_t end = n + 1;
  if (!(job_.view_.op_traits(rank_, first) & kP2p) || first.group == 0) return end;
  while (end < records_.calls.end()) {
    const Call& next = records_.calls.at(end);
    bool same = is_written(next) && next.group == first.group && next.comm == first.comm &&
                (job_.view_.op_traits(rank_, next) & kP2p);
    if (!same) break;
    ++end;
  }
  return end;
}

void RecorderRankWriter::entries() {
  key("entries");
  out_.open_list();
  const auto& calls = records_.calls;
  next_record_ = static_cast<std::int64_t>(calls.first());
  for (std::uint64_t n = calls.first(); n < calls.end();) {
    if (!is_written(calls.at(n))) {
      note_left_out(calls.at(n++));
      continue;
    }
    std::uint64_t end = p2p_group(n), from = n;
    for (; n < end; ++n) call(calls.at(n), n == from);
    if (end - from > 1) group_end(from, end);
  }
  out_.close_list();
}

// As the recorder has it: of the kind of the newest launch.
void RecorderRankWriter::status() {
  key("pg_status");
  out_.open_dictionary();
  for (std::size_t i = 0; i < of_comm_.size(); ++i) {
    const Progress& one = of_comm_[i];
    if (!one.is_member) continue;
    bool is_p2p = one.p2p > 0;
    std::uint64_t enqueued = is_p2p ? one.p2p : std::max(one.collectives, records_.comms[i].calls);
    std::uint64_t done = is_p2p ? one.done_p2p : one.is_waiting ? one.done_collectives : enqueued;
    out_.text(job_.groups_[one.group].name);
    out_.open_dictionary();
    key("last_enqueued_collective"), out_.integer(static_cast<std::int64_t>(enqueued));
    key("last_started_collective"), out_.integer(-1);
    key("last_completed_collective"), out_.integer(static_cast<std::int64_t>(done));
    out_.close_dictionary();
  }
  out_.close_dictionary();
}

std::string RecorderRankWriter::write() {
  out_.open_dictionary();
  key("version"), out_.text(kVersion);
  key("comm_lib_version"), out_.text("");
  groups();
  entries();
  status();
  out_.close_dictionary();
  return out_.finish();
}

RecorderExport::RecorderExport(const JobView& view) : view_(view) {
  for (std::size_t i = 0; i < view.comms.size(); ++i) {
    const CommView& comm = view.comms[i];
    std::map<Rank, std::int32_t> position_of;
    for (const Member& member : comm.members) position_of[member.rank] = member.position;
    bool is_world = comm.size == view.world_size;
    for (std::int32_t position = 0; is_world && position < comm.size; ++position) {
      bool heard = std::any_of(comm.members.begin(), comm.members.end(),
                               [&](const Member& member) { return member.position == position; });
      if (!heard) position_of.emplace(position, position);
    }
    if (static_cast<std::int32_t>(position_of.size()) < comm.size) unheard_.push_back(comm.name);
    Group group;
    group.name = std::to_string(i);
    group.description = comm.name == "world" ? "default_pg" : comm.name;
    for (const auto& [rank, position] : position_of) {
      group.index[position] = static_cast<std::int32_t>(group.index.size());
      group.ranks += (group.ranks.empty() ? "[" : ", ") + std::to_string(rank);
    }
    group.ranks += group.ranks.empty() ? "[]" : "]";
    groups_.push_back(std::move(group));
  }
}

std::string RecorderExport::dump_of(const RankView& rank) { return RecorderRankWriter(*this, rank).write(); }

std::vector<std::string> RecorderExport::remarks() const {
  std::vector<std::string> lines;
  for (const std::string& name : unheard_) {
    lines.push_back("communicator " + name + ": ranks that were not heard from are left out of the dumps");
  }
  for (const auto& [op, count] : left_out_) {
    lines.push_back(std::to_string(count) + " calls of " + op +
                    " are left out: the recorder has no such operation");
  }
  return lines;
}

}  // namespace dshang::job
