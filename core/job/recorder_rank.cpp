#include "core/job/recorder_rank.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <set>
#include <unordered_map>

#include "core/flight/hash.h"
#include "core/job/printable.h"
#include "core/job/recorder_words.h"

namespace dshang::job {
namespace {

using Kind = RecorderValue::Kind;

constexpr std::uint32_t kNone = UINT32_MAX, kAbsent = UINT32_MAX - 1;
// The name of the first group, which Gloo describes without it (torch 2.14).
constexpr std::string_view kDefaultGroup = "0";
constexpr std::size_t kMostFrames = 256, kMostFrameFields = 16;
constexpr std::uint32_t kQueued = flight::kCallReturned | flight::kCallMarked;

// "nccl:send 3->2" in its parts.
struct Operation {
  RecorderOp op;
  std::uint8_t index = 0;  // into RankRecords::ops
  std::int32_t peer = -1;
  bool closes_group = false;  // the entry of a whole coalesced group, behind those of its calls
  bool is_p2p() const { return op.traits & (flight::kOpSend | flight::kOpRecv); }
  bool has_events =
      true;  // false: of Gloo, whose entries are retired when they are done, and are never "completed"
};

std::uint64_t id_of(const RecorderGroup& group) {
  std::uint64_t hash = flight::fnv1a(group.name.data(), group.name.size());
  for (std::int32_t rank : group.ranks) hash = flight::mix(hash, static_cast<std::uint64_t>(rank));
  return hash ? hash : 1;
}

// "coalesced", "ALLGATHER_coalesced": but not all_gather_into_tensor_coalesced, which is one operation.
bool is_group_end(std::string_view name) {
  bool of_a_type =
      !name.empty() && std::isupper(static_cast<unsigned char>(name[0])) && name.ends_with("_coalesced");
  return name == "coalesced" || of_a_type;
}

class Converter {
 public:
  Converter(Rank rank, const RecorderDump& dump, Names& names)
      : dump_(dump),
        tree_(dump.tree),
        names_(names),
        records_((out_.process = std::make_unique<Process>())->records) {
    records_.rank = rank;
    records_.provisional = false;
    out_.version = dump.version;
    out_.status = dump.status;
  }

  RecorderRank run();

 private:
  void add_groups();
  void add(const RecorderEntry& entry);
  void count_collective(Call& call, const RecorderEntry& entry, RecorderRank::Group& group);
  bool continues(const RecorderEntry& entry) const;
  Call arguments_of(const RecorderEntry& entry, const Operation& operation, std::uint32_t comm);
  void set_progress(const RecorderEntry& entry, const Operation& operation, Call& call);
  void count_p2p(Call& call, bool is_send, RecorderRank::Group& group);
  void push_call(const RecorderEntry& entry, const Operation& operation, std::uint32_t comm);
  bool close_group(const RecorderEntry& entry, std::uint32_t comm);  // false: it closes nothing
  void learn_ids();
  void judge_extent();
  std::uint32_t comm_of(std::uint32_t text);
  const Operation& operation_of(std::uint32_t text);
  Operation parse(std::string_view text);
  std::uint8_t op_index(const RecorderOp& op);
  std::uint32_t thread_of(std::uint32_t text);
  NameId name_of(const RecorderValue& value);
  FrameName read_frame(const RecorderValue& value);
  const FrameName& frame_of(const RecorderValue& value);
  SiteId site_of(const RecorderValue& frames);
  bool same_text(std::uint32_t a, std::uint32_t b) const;

  const RecorderDump& dump_;
  const RecorderTree& tree_;
  Names& names_;
  RecorderRank out_;
  RankRecords& records_;
  std::unordered_map<std::string_view, std::uint32_t> comms_;
  std::unordered_map<std::string_view, std::uint32_t> threads_;
  std::vector<Operation> operations_;
  // By text, the last one for none; kNone = not looked up yet.
  std::vector<std::uint32_t> operation_of_text_, comm_of_text_, thread_of_text_;
  std::vector<NameId> name_of_text_;
  // By container; kNone = not looked up yet.
  std::vector<SiteId> site_of_container_;
  std::vector<std::uint32_t> frame_of_container_;  // index into frames_
  std::vector<FrameName> frames_;
  NameId backward_ = 0;
  std::vector<std::uint64_t> open_;  // newest calls of one sequence id, which a group's end may follow
  const RecorderEntry* open_entry_ = nullptr;
  std::uint32_t next_group_ = 1;
};

void Converter::add_groups() {
  for (const RecorderGroup& group : dump_.groups) {
    Comm comm;
    auto at = std::find(group.ranks.begin(), group.ranks.end(), records_.rank);
    comm.state = flight::CommState::kReady;
    comm.origin = flight::CommOrigin::kInit;
    comm.id = at == group.ranks.end() ? 0 : id_of(group);
    comm.rank = at == group.ranks.end() ? -1 : static_cast<std::int32_t>(at - group.ranks.begin());
    comm.size = static_cast<std::int32_t>(group.ranks.size());
    bool whole = group.description == "default_pg" || group.name.empty();
    std::string name = printable_line(group.name);
    bool named = !group.description.empty() && group.description != "undefined";
    if (!whole) {
      comm.label = names_.name(named ? printable_line(group.description) + " (" + name + ")"
                                     : "process group " + name);
    }
    comms_.emplace(group.name, static_cast<std::uint32_t>(records_.comms.size()));
    records_.comms.push_back(comm);
    out_.groups.push_back({group.name, group.description, {}, false, false, {}, {}});
  }
}

// kAbsent: the dump does not describe the group.
std::uint32_t Converter::comm_of(std::uint32_t text) {
  if (text == kNoText) return kAbsent;
  std::uint32_t& known = comm_of_text_[text];
  if (known != kNone) return known;
  known = kAbsent;
  auto found = comms_.find(tree_.text_at(text));
  if (found == comms_.end() && tree_.text_at(text) == kDefaultGroup) found = comms_.find("");
  if (found != comms_.end() && records_.comms[found->second].id) known = found->second;
  return known;
}

std::uint8_t Converter::op_index(const RecorderOp& op) {
  flight::OpInfo info{};
  for (std::size_t i = 0; i < std::min(op.name.size(), sizeof info.name - 1); ++i) {
    unsigned char letter = static_cast<unsigned char>(op.name[i]);
    info.name[i] = letter < 0x80 && std::isalnum(letter) ? static_cast<char>(letter) : '_';
  }
  info.traits = op.traits;
  auto& ops = records_.ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!std::strcmp(ops[i].name, info.name)) return static_cast<std::uint8_t>(i);
  }
  if (ops.size() == UINT8_MAX) return static_cast<std::uint8_t>(ops.size() - 1);  // no program has that many
  ops.push_back(info);
  return static_cast<std::uint8_t>(ops.size() - 1);
}

Operation Converter::parse(std::string_view text) {
  std::string_view name = text.substr(std::min(text.find(':') + 1, text.size()));
  std::size_t space = std::min(name.find(' '), name.size());
  std::string_view pair = name.substr(std::min(space + 1, name.size()));
  name = name.substr(0, space);
  Operation operation;
  operation.has_events = !text.starts_with("gloo:");
  operation.op = op_of_recorder(name);
  operation.closes_group = is_group_end(name);
  // "3->2" of a send, "3<-0" of a receive: the peer is behind it.
  std::size_t arrow = pair.find_first_of("<-");
  if (arrow != pair.npos && arrow + 2 <= pair.size()) {
    std::from_chars(pair.data() + arrow + 2, pair.data() + pair.size(), operation.peer);
  }
  operation.index = op_index(operation.op);
  return operation;
}

const Operation& Converter::operation_of(std::uint32_t text) {
  std::uint32_t& known = operation_of_text_[text == kNoText ? tree_.text_count() : text];
  if (known == kNone) {
    known = static_cast<std::uint32_t>(operations_.size());
    operations_.push_back(parse(text == kNoText ? "unknown" : tree_.text_at(text)));
  }
  return operations_[known];
}

std::uint32_t Converter::thread_of(std::uint32_t text) {
  std::uint32_t& known = thread_of_text_[text == kNoText ? tree_.text_count() : text];
  if (known != kNone) return known;
  std::string_view id = text == kNoText ? std::string_view() : tree_.text_at(text);
  auto [thread, is_first] = threads_.try_emplace(id, static_cast<std::uint32_t>(records_.threads.size()));
  if (is_first) {
    records_.threads.emplace_back();
    records_.threads.back().tid = static_cast<std::uint32_t>(records_.threads.size());
    records_.threads.back().flags = flight::kThreadCalls;
  }
  return known = thread->second;
}

NameId Converter::name_of(const RecorderValue& value) {
  if (value.kind != Kind::kText) return 0;
  NameId& id = name_of_text_[value.index];
  if (id == kNone) id = names_.name(printable_line(tree_.text_of(value)));
  return id;
}

FrameName Converter::read_frame(const RecorderValue& value) {
  FrameName frame;
  std::span<const RecorderValue> all = tree_.items(value);
  for (std::size_t i = 0; i + 1 < std::min(all.size(), kMostFrameFields); i += 2) {
    std::string_view key = tree_.text_of(all[i]);
    if (key == "name") frame.function = name_of(all[i + 1]);
    if (key == "filename") frame.file = name_of(all[i + 1]);
    if (key == "line" && all[i + 1].kind == Kind::kInteger) {
      frame.line = static_cast<std::int32_t>(std::clamp<std::int64_t>(all[i + 1].integer, 0, INT32_MAX));
    }
  }
  return frame;
}

const FrameName& Converter::frame_of(const RecorderValue& value) {
  static constexpr FrameName kUnknown;
  if (value.kind != Kind::kDictionary) return kUnknown;
  std::uint32_t& known = frame_of_container_[value.index];
  if (known == kNone) {
    known = static_cast<std::uint32_t>(frames_.size());
    frames_.push_back(read_frame(value));
  }
  return frames_[known];
}

SiteId Converter::site_of(const RecorderValue& value) {
  std::span<const RecorderValue> all = tree_.items(value);
  if (all.empty()) return 0;
  SiteId& known = site_of_container_[value.index];
  if (known != kNone) return known;
  std::vector<FrameName> frames;
  frames.reserve(std::min(all.size(), kMostFrames));
  for (const RecorderValue& one : all.first(std::min(all.size(), kMostFrames)))
    frames.push_back(frame_of(one));
  return known = names_.site(std::move(frames), all.size() > kMostFrames);
}

bool Converter::same_text(std::uint32_t a, std::uint32_t b) const {
  return a == b || (a != kNoText && b != kNoText && tree_.text_at(a) == tree_.text_at(b));
}

void Converter::count_collective(Call& call, const RecorderEntry& entry, RecorderRank::Group& group) {
  auto seq = static_cast<std::uint64_t>(std::max<std::int64_t>(entry.collective_seq, 1));
  call.number = seq;
  if (!group.collectives.empty()) {
    const RecorderRank::Numbered& last = group.collectives.back();
    call.number = records_.calls.at(last.n).number + (seq > last.seq ? seq - last.seq : 1);
    group.coalesced = group.coalesced || seq <= last.seq;
  }
  group.collectives.push_back({records_.calls.end(), seq});
}

// The calls of the group were launched together: what became of it became of each of them.
bool Converter::close_group(const RecorderEntry& entry, std::uint32_t comm) {
  if (open_.empty() || !continues(entry)) return false;
  for (std::uint64_t n : open_) {
    Call& call = records_.calls.at(n);
    call.group = next_group_;
    call.flags |= flight::kCallInGroup;
    call.stream = comm + 1;
    if (entry.completed) call.flags |= flight::kCallStarted | flight::kCallDone;
    if (!entry.completed) call.flags &= ~static_cast<std::uint32_t>(flight::kCallDone);
    call.done_ns = entry.completed ? entry.completed_ns : 0;
  }
  ++next_group_;
  open_.clear();
  return true;
}

void Converter::add(const RecorderEntry& entry) {
  out_.newest_ns = std::max({out_.newest_ns, entry.created_ns, entry.started_ns, entry.completed_ns});
  if (out_.oldest_ns == 0 || entry.created_ns < out_.oldest_ns) out_.oldest_ns = entry.created_ns;
  const Operation& operation = operation_of(entry.name);
  // Out of the watchdog's hands without an end: it has timed out.
  if (operation.has_events && entry.retired && !entry.completed && entry.timeout_ms > 0 &&
      entry.timeout_ms < INT32_MAX) {
    out_.newest_ns =
        std::max(out_.newest_ns, entry.created_ns + static_cast<std::uint64_t>(entry.timeout_ms) * 1'000'000);
  }
  std::uint32_t comm = comm_of(entry.group);
  if (comm == kAbsent) {
    ++out_.without_group;
    return;
  }
  RecorderRank::Group& group = out_.groups[comm];
  if (entry.pg_id >= 0) group.pg_id = entry.pg_id;
  group.last_seq = std::max(group.last_seq.value_or(0), entry.collective_seq);
  // Older versions write the end alone: then it stands for the group.
  if (operation.closes_group && (close_group(entry, comm) || entry.is_p2p)) return;
  push_call(entry, operation, comm);
}

// Whether the entry is of the same launch as the one before it.
bool Converter::continues(const RecorderEntry& entry) const {
  return open_entry_ && open_entry_->is_p2p == entry.is_p2p && same_text(open_entry_->group, entry.group) &&
         (entry.is_p2p ? open_entry_->p2p_seq == entry.p2p_seq
                       : open_entry_->collective_seq == entry.collective_seq);
}

// What was asked for.
Call Converter::arguments_of(const RecorderEntry& entry, const Operation& operation, std::uint32_t comm) {
  Call call;
  std::uint32_t traits = operation.op.traits;
  call.comm = comm;
  call.op = operation.index;
  if (operation.is_p2p()) call.root_or_peer = operation.peer;
  if (operation.op.counted == CountedSize::kInput) call.count = entry.input_count;
  if (operation.op.counted == CountedSize::kOutput) call.count = entry.output_count;
  call.dtype = entry.input != flight::DType::kNone ? entry.input : entry.output;
  if (traits & flight::kOpReduces) call.reduce_op = flight::ReduceOp::kUnknown;
  call.thread = thread_of(entry.thread);
  // Autograd's own threads run backward passes.
  if (entry.thread_name != kNoText && tree_.text_at(entry.thread_name).starts_with("pt_autograd")) {
    if (!backward_) backward_ = names_.name("backward");
    call.phase = backward_;
  }
  call.site = site_of(entry.frames);
  return call;
}

// What became of it.
void Converter::set_progress(const RecorderEntry& entry, const Operation& operation, Call& call) {
  bool is_done = entry.completed || (!operation.has_events && entry.retired);
  call.enter_ns = call.return_ns = entry.created_ns;
  call.started_ns = entry.started_ns;
  call.done_ns = is_done ? std::max(entry.completed_ns, entry.created_ns) : 0;
  call.flags = kQueued;
  if (is_done) call.flags |= flight::kCallStarted | flight::kCallDone;
  if (entry.started_ns) call.flags |= flight::kCallStartMarked | flight::kCallStarted;
  out_.is_timed = out_.is_timed || entry.started_ns;
}

void Converter::count_p2p(Call& call, bool is_send, RecorderRank::Group& group) {
  group.p2p = true;
  std::vector<std::uint64_t>& calls = out_.p2p[{call.comm, is_send, call.root_or_peer}];
  call.number = calls.size() + 1;
  calls.push_back(records_.calls.end());
  // Alone it has a stream for its pair (ProcessGroupNCCL); in a group that of all.
  call.stream = flight::mix(call.comm + 1, static_cast<std::uint64_t>(call.root_or_peer) + 1);
}

void Converter::push_call(const RecorderEntry& entry, const Operation& operation, std::uint32_t comm) {
  RecorderRank::Group& group = out_.groups[comm];
  Call call = arguments_of(entry, operation, comm);
  set_progress(entry, operation, call);
  out_.has_frames = out_.has_frames || call.site;
  call.stream = comm + 1;
  if (operation.is_p2p()) {
    count_p2p(call, operation.op.traits & flight::kOpSend, group);
  } else {
    count_collective(call, entry, group);
  }
  if (!continues(entry)) open_.clear();
  open_.push_back(records_.calls.end());
  open_entry_ = &entry;
  if (entry.timeout_ms > 0 && (out_.least_timeout_ms == 0 || entry.timeout_ms < out_.least_timeout_ms)) {
    out_.least_timeout_ms = entry.timeout_ms;
  }
  records_.calls.push(std::move(call));
}

// A process counts its groups as they are made, and names are counted up likewise: where each group has been
// used, the n-th number belongs to the n-th name.
void Converter::learn_ids() {
  if (!out_.status || out_.status->size() != out_.groups.size()) return;
  auto numbered = [](const RecorderRank::Group& group) {
    return !group.name.empty() && std::all_of(group.name.begin(), group.name.end(),
                                              [](unsigned char letter) { return std::isdigit(letter); });
  };
  if (!std::all_of(out_.groups.begin(), out_.groups.end(), numbered)) return;
  std::size_t i = 0;
  for (const auto& [id, status] : *out_.status) {
    if (out_.groups[i].pg_id.value_or(id) != id) return;  // an entry says otherwise
    ++i;
  }
  i = 0;
  for (const auto& [id, status] : *out_.status) out_.groups[i++].pg_id = id;
}

void Converter::judge_extent() {
  const auto& entries = dump_.entries;
  bool gapless = true, any_done = false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    gapless = gapless && entries[i].record_id == static_cast<std::int64_t>(i);
    any_done = any_done || entries[i].completed || entries[i].retired;
  }
  out_.from_the_start = !entries.empty() && gapless;
  out_.only_active = !out_.from_the_start && !any_done;
}

RecorderRank Converter::run() {
  add_groups();
  for (auto* by_text : {&operation_of_text_, &comm_of_text_, &thread_of_text_, &name_of_text_}) {
    by_text->resize(tree_.text_count() + 1, kNone);
  }
  site_of_container_.resize(tree_.container_count(), kNone);
  frame_of_container_.resize(tree_.container_count(), kNone);
  for (const RecorderEntry& entry : dump_.entries) add(entry);
  learn_ids();
  judge_extent();
  if (out_.is_timed) {  // start marks are placed then: what has none was not reached
    for (std::uint64_t n = records_.calls.first(); n < records_.calls.end(); ++n) {
      records_.calls.at(n).flags |= flight::kCallStartMarked;
    }
  }
  records_.python = out_.has_frames ? 1 : 0;
  return std::move(out_);
}

}  // namespace

RecorderRank rank_of_dump(Rank rank, const RecorderDump& dump, Names& names) {
  return Converter(rank, dump, names).run();
}

}  // namespace dshang::job
