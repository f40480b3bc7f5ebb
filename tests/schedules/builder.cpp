#include "builder.h"

#include <algorithm>

namespace dshang::schedules {

Builder::Builder(Job& j, Rng& r) : job(j), rng(r) {
  job.programs.resize(static_cast<std::size_t>(job.world));
  Communicator all;
  for (int rank = 0; rank < job.world; ++rank) {
    active_.push_back(rank);
    all.ranks.push_back(rank);
  }
  job.comms.push_back(std::move(all));
}

CommOfRank Builder::split(const std::vector<std::vector<int>>& groups) {
  CommOfRank comm(static_cast<std::size_t>(job.world), -1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].size() < 2) continue;
    for (int rank : groups[g]) comm[static_cast<std::size_t>(rank)] = static_cast<int>(job.comms.size());
    job.comms.push_back({groups[g], 0, static_cast<int>(g)});
  }
  return comm;
}

void Builder::on(const std::vector<int>& ranks, const std::function<void()>& write) {
  std::vector<int> before = active_;
  active_ = ranks;
  write();
  active_ = before;
}

void Builder::region(Region region, const std::function<void()>& write, int tag) {
  Instruction begin;
  begin.kind = Kind::kBegin;
  begin.region = region;
  begin.tag = tag ? tag : new_tag();
  emit(begin);
  write();
  begin.kind = Kind::kEnd;
  emit(begin);
}

void Builder::function(const std::string& file, const std::string& name, int line,
                       const std::function<void()>& write) {
  int outer = line_;
  if (!callers_.empty()) callers_.back().line = line;
  callers_.push_back({file, name, line});
  write();
  callers_.pop_back();
  line_ = outer;
}

void Builder::phase(const std::string& text, const std::function<void()>& write) {
  Instruction push;
  push.kind = Kind::kPhasePush;
  push.name = name(text);
  push.site = site_here();
  emit(push);
  write();
  push.kind = Kind::kPhasePop;
  emit(push);
}

void Builder::module(const std::string& text, int tag, const std::function<void()>& write) {
  region(
      Region::kModule,
      [&] {
        Instruction enter;
        enter.kind = Kind::kEnter;
        enter.name = name(text);
        enter.site = user_frames ? site_here() : -1;
        enter.thread = static_cast<std::uint8_t>(thread);
        emit(enter);
        write();
        enter.kind = Kind::kExit;
        emit(enter);
      },
      tag);
}

void Builder::collective(const CommOfRank& comm, const Arguments& arguments) {
  rooted(comm, arguments, line_);
}

void Builder::rooted(const CommOfRank& comm, const Arguments& a, int root_line) {
  Instruction one;
  one.kind = Kind::kCall;
  one.op = a.op;
  one.count = a.count;
  one.dtype = a.dtype;
  bool reduces = a.op == Op::kAllReduce || a.op == Op::kReduceScatter || a.op == Op::kReduce;
  if (reduces) one.reduce_op = a.reduce_op;
  bool has_root = a.op == Op::kBroadcast || a.op == Op::kReduce;
  if (has_root) one.root = a.root;
  one.purpose = new_purpose();
  int line = line_;
  for (int rank : active_) {
    int c = comm[static_cast<std::size_t>(rank)];
    if (c < 0) continue;
    bool is_root = has_root && job.position(c, rank) == static_cast<std::size_t>(a.root);
    line_ = is_root ? root_line : line;
    one.site = site_here();
    call(rank, c, one, a.waited);
  }
  line_ = line;
}

void Builder::call(int rank, int comm, Instruction one, bool waited) {
  one.comm = comm;
  one.thread = static_cast<std::uint8_t>(thread);
  one.stream = streams_per_comm ? 1 + comm : 0;
  if (!streams_per_comm) {
    emit_on(rank, one);
  } else {
    Instruction wait;
    wait.kind = Kind::kWaitStream;
    wait.stream = one.stream;
    wait.other = 0;
    emit_on(rank, wait);
    emit_on(rank, one);
    std::swap(wait.stream, wait.other);
    if (waited) emit_on(rank, wait);
  }
  if (job.hosts != Hosts::kSyncEach || !waited) return;
  Instruction sync;
  sync.kind = Kind::kSync;
  sync.thread = one.thread;
  emit_on(rank, sync);
}

void Builder::message(const CommOfRank& comm, Op op, int rank, int peer, std::uint64_t count, bool in_group,
                      std::uint64_t purpose) {
  Instruction one;
  one.kind = Kind::kCall;
  one.op = op;
  one.comm = comm[static_cast<std::size_t>(rank)];
  one.peer = static_cast<int>(job.position(one.comm, peer));
  one.count = count;
  one.dtype = flight::DType::kBF16;
  one.site = site_here();
  one.thread = static_cast<std::uint8_t>(thread);
  one.stream = streams_per_comm ? 1 + one.comm : 0;
  one.purpose = purpose;
  if (in_group) {
    emit_on(rank, one);
  } else {
    call(rank, one.comm, one, true);
  }
}

// The n-th send from a to b and the n-th receive on b from a are one message.
void Builder::send(const CommOfRank& comm, int from, int to, std::uint64_t count, bool in_group) {
  auto key = std::make_pair(std::make_pair(from, to), comm[static_cast<std::size_t>(from)]);
  std::vector<std::uint64_t>& mine = sent_[key];
  const std::vector<std::uint64_t>& theirs = received_[key];
  std::uint64_t purpose = mine.size() < theirs.size() ? theirs[mine.size()] : new_purpose();
  mine.push_back(purpose);
  message(comm, Op::kSend, from, to, count, in_group, purpose);
}

void Builder::receive(const CommOfRank& comm, int from, int to, std::uint64_t count, bool in_group) {
  auto key = std::make_pair(std::make_pair(from, to), comm[static_cast<std::size_t>(from)]);
  std::vector<std::uint64_t>& mine = received_[key];
  const std::vector<std::uint64_t>& theirs = sent_[key];
  std::uint64_t purpose = mine.size() < theirs.size() ? theirs[mine.size()] : new_purpose();
  mine.push_back(purpose);
  message(comm, Op::kRecv, to, from, count, in_group, purpose);
}

void Builder::group(int rank, const std::function<void()>& write) {
  on({rank}, [&] {
    Instruction group;
    group.kind = Kind::kGroupStart;
    group.thread = static_cast<std::uint8_t>(thread);
    emit(group);
    write();
    group.kind = Kind::kGroupEnd;
    emit(group);
    if (job.hosts == Hosts::kSyncEach) sync();
  });
}

void Builder::wait_for(const CommOfRank& comm) {
  for (int rank : active_) {
    int c = comm[static_cast<std::size_t>(rank)];
    if (c < 0 || !streams_per_comm) continue;
    Instruction wait;
    wait.kind = Kind::kWaitStream;
    wait.other = 1 + c;
    emit_on(rank, wait);
  }
}

void Builder::kernel(double seconds) {
  Instruction work;
  work.kind = Kind::kKernel;
  for (int rank : active_) {
    work.seconds = seconds * rng.real(0.95, 1.05);
    emit_on(rank, work);
  }
}

void Builder::host(double seconds) {
  Instruction work;
  for (int rank : active_) {
    work.seconds = seconds * rng.real(0.5, 1.5);
    emit_on(rank, work);
  }
}

void Builder::sync() {
  Instruction sync;
  sync.kind = Kind::kSync;
  emit(sync);
}

void Builder::step(std::int64_t number) {
  Instruction step;
  step.kind = Kind::kStep;
  step.step = number;
  step.site = site_here();
  emit(step);
}

void Builder::mark(Kind kind) {
  Instruction mark;
  mark.kind = kind;
  emit(mark);
}

void Builder::emit(Instruction instruction) {
  for (int rank : active_) emit_on(rank, instruction);
}

void Builder::emit_on(int rank, const Instruction& instruction) {
  job.programs[static_cast<std::size_t>(rank)].push_back(instruction);
}

int Builder::site_here() {
  Site site = {{"site-packages/torch/distributed/distributed_c10d.py", "collective", 2810}};
  if (user_frames) {
    for (std::size_t i = callers_.size(); i-- > 0;) {
      int line = i + 1 == callers_.size() ? line_ : callers_[i].line;
      site.push_back({callers_[i].file, callers_[i].function, line});
    }
  } else {
    site.push_back({"site-packages/torch/autograd/graph.py", "_engine_run_backward", 824});
  }
  std::string key;
  for (const Frame& frame : site)
    key += frame.file + ":" + std::to_string(frame.line) + " " + frame.function + "|";
  auto [found, is_new] = sites_.emplace(key, static_cast<int>(job.sites.size()));
  if (is_new) job.sites.push_back(std::move(site));
  return found->second;
}

int Builder::name(const std::string& text) {
  auto [found, is_new] = names_.emplace(text, static_cast<int>(job.names.size()));
  if (is_new) job.names.push_back(text);
  return found->second;
}

}  // namespace dshang::schedules
