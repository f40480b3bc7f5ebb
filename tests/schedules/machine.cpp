#include "machine.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dshang::schedules {
namespace {

constexpr double kOverhead = 1e-5;  // of a host's action
constexpr double kTransfer = 1e-4;  // of a call, at least

std::uint64_t bytes_of(const Instruction& one) {
  constexpr std::uint64_t kBytes[] = {1, 1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 1};
  return one.count * kBytes[static_cast<std::size_t>(one.dtype)];
}

// Something that a stream has to do.
struct Item {
  enum class Kind { kCalls, kKernel, kWait };
  Kind kind;
  double queued;
  std::vector<std::size_t> calls;  // of its rank
  double seconds = 0;
  int other = -1;               // kWait: stream
  std::size_t other_items = 0;  // kWait: so many of its items
  double reached = kNever, end = kNever;
};

struct Stream {
  std::vector<Item> items;
  std::size_t resolved = 0;
};

struct Party {
  int rank;
  std::size_t call;
};

class Machine {
 public:
  Machine(const Job& job, const std::vector<Mishap>& mishaps, Rng& rng)
      : job_(job), mishaps_(mishaps), rng_(rng) {
    hosts_.resize(static_cast<std::size_t>(job.world));
    history_.ranks.resize(hosts_.size());
    for (int r = 0; r < job.world; ++r) {
      host(r).clock = times(r).started = rng.real(0, 0.2);
      host(r).streams.resize(1 + job.comms.size() + 1);
    }
  }

  History go() {
    for (bool changes = true; changes;) {
      changes = false;
      for (int r = 0; r < job_.world; ++r) {
        while (advance(r)) changes = true;
        for (std::size_t s = 0; s < host(r).streams.size(); ++s) {
          while (resolve(r, s)) changes = true;
        }
      }
    }
    return std::move(history_);
  }

 private:
  struct Host {
    double clock = 0;
    std::size_t at = 0;
    bool over = false, queued_now = false, slowed = false;
    int depth = 0;
    std::uint32_t groups = 0;
    std::vector<std::size_t> in_group;
    std::int64_t step = flight::kNoStep;
    std::vector<int> phases, modules;
    std::map<std::tuple<int, int, int>, std::uint64_t> numbers;  // comm, direction, peer
    std::vector<Stream> streams;
  };

  Host& host(int r) { return hosts_[static_cast<std::size_t>(r)]; }
  RankTimes& times(int r) { return history_.ranks[static_cast<std::size_t>(r)]; }
  const Mishap* mishap(int r) const {
    return mishaps_.empty() ? nullptr : &mishaps_[static_cast<std::size_t>(r)];
  }
  double cut_off(int r, Mishap::Kind kind) const {
    return mishap(r) && mishap(r)->kind == kind ? mishap(r)->time : kNever;
  }

  bool advance(int r);
  bool meet_mishap(int r);
  bool call(int r, const Instruction& one);
  bool close_group(int r, const Instruction& one);
  bool wait_for_all(int r, const Instruction& one);
  void visit(int r, const Instruction& one);
  Item& push(int r, int stream, Item item);
  // Until when the host has to wait before the stream takes more; false = not known yet.
  bool until_room(int r, int stream, double* until) const;
  bool resolve(int r, std::size_t s);
  bool is_complete(int r, std::size_t call, double* end);
  double completion(const std::vector<Party>& parties, bool agree);
  static int direction(Op op) { return op == Op::kSend ? 1 : op == Op::kRecv ? 2 : 0; }

  const Job& job_;
  const std::vector<Mishap>& mishaps_;
  Rng& rng_;
  std::vector<Host> hosts_;
  History history_;
  std::map<std::pair<int, std::uint64_t>, std::vector<Party>> collectives_;          // comm, number
  std::map<std::tuple<int, int, int, std::uint64_t>, std::vector<Party>> messages_;  // comm, from, to, number
};

bool Machine::meet_mishap(int r) {
  const Mishap* m = mishap(r);
  Host& h = host(r);
  RankTimes& t = times(r);
  using enum Mishap::Kind;
  if (!m || m->kind == kNone) return false;
  if (m->kind == kDies || m->kind == kStops) {
    if (h.clock < m->time && h.at < m->at) return false;
    if (h.clock < m->time && m->time != kNever) return false;
    t.mishap = m->time == kNever ? h.clock : m->time;
    h.over = true;
    return true;
  }
  if (h.at != m->at || t.mishap != kNever) return false;
  t.mishap = h.clock;
  if (m->kind == kBlocks || m->kind == kWorks) {
    h.over = true;
    return true;
  }
  if (m->kind == kGpuStuck) {
    int stream = job_.programs[static_cast<std::size_t>(r)][h.at].stream;
    Item stuck{Item::Kind::kKernel, h.clock, {}, kNever};
    push(r, stream, stuck);
  }
  return false;
}

bool Machine::advance(int r) {
  Host& h = host(r);
  const Program& program = job_.programs[static_cast<std::size_t>(r)];
  if (h.over || h.at >= program.size() || h.clock == kNever) return false;
  if (meet_mishap(r)) return false;
  const Instruction& one = program[h.at];
  RankTimes& t = times(r);
  switch (one.kind) {
    case Kind::kBegin:
    case Kind::kEnd:
      break;
    case Kind::kHost:
      h.clock += one.seconds;
      break;
    case Kind::kKernel: {
      double until = 0;
      if (!until_room(r, one.stream, &until)) return false;
      h.clock = std::max(h.clock, until);
      if (h.clock == kNever) return false;
      push(r, one.stream, {Item::Kind::kKernel, h.clock, {}, one.seconds});
      break;
    }
    case Kind::kWaitStream: {
      Item wait{Item::Kind::kWait, h.clock, {}};
      wait.other = one.other;
      wait.other_items = h.streams[static_cast<std::size_t>(one.other)].items.size();
      push(r, one.stream, wait);
      break;
    }
    case Kind::kSync:
      if (!wait_for_all(r, one)) return false;
      break;
    case Kind::kCall:
      if (!call(r, one)) return false;
      break;
    case Kind::kGroupStart:
      if (h.depth++ == 0) ++h.groups, h.in_group.clear();
      t.groups.push_back({h.clock, one.thread, h.depth});
      break;
    case Kind::kGroupEnd:
      if (!close_group(r, one)) return false;
      break;
    case Kind::kQuit:
      t.ended = h.clock;
      h.over = true;
      break;
    default:
      visit(r, one);
  }
  if (one.kind != Kind::kBegin && one.kind != Kind::kEnd) h.clock += kOverhead * rng_.real(0.5, 2);
  t.last = h.clock;
  ++h.at;
  return true;
}

void Machine::visit(int r, const Instruction& one) {
  Host& h = host(r);
  if (one.kind == Kind::kStep) {
    h.step = one.step;
    if (mishap(r) && mishap(r)->kind == Mishap::Kind::kSlow && h.at >= mishap(r)->at) {
      times(r).mishap = std::min(times(r).mishap, h.clock);
      h.clock += mishap(r)->seconds * rng_.real(0.8, 1.2);
    }
  }
  if (one.kind == Kind::kPhasePush) h.phases.push_back(one.name);
  if (one.kind == Kind::kEnter) h.modules.push_back(one.name);
  times(r).visits.push_back({&one, h.clock, times(r).calls.size(), h.step,
                             h.phases.empty() ? -1 : h.phases.back(),
                             h.modules.empty() ? -1 : h.modules.back()});
  if (one.kind == Kind::kPhasePop && !h.phases.empty()) h.phases.pop_back();
  if (one.kind == Kind::kExit && !h.modules.empty()) h.modules.pop_back();
}

Item& Machine::push(int r, int stream, Item item) {
  std::vector<Item>& items = host(r).streams[static_cast<std::size_t>(stream)].items;
  items.push_back(std::move(item));
  return items.back();
}

bool Machine::until_room(int r, int stream, double* until) const {
  const Stream& s = hosts_[static_cast<std::size_t>(r)].streams[static_cast<std::size_t>(stream)];
  auto queue = static_cast<std::size_t>(job_.queue);
  *until = 0;
  if (s.items.size() <= queue) return true;
  std::size_t wanted = s.items.size() - queue;  // items that have to be over
  if (s.resolved < wanted) return false;
  *until = s.items[wanted - 1].end;
  return true;
}

bool Machine::call(int r, const Instruction& one) {
  Host& h = host(r);
  RankTimes& t = times(r);
  if (!h.queued_now) {
    int way = direction(one.op);
    CallTimes c{&one,
                ++h.numbers[{one.comm, way, way ? one.peer : 0}],
                t.visits.size(),
                h.step,
                h.phases.empty() ? -1 : h.phases.back(),
                h.modules.empty() ? -1 : h.modules.back(),
                h.depth ? h.groups : 0,
                h.clock,
                h.depth ? kNever : h.clock};
    std::size_t index = t.calls.size();
    if (h.depth) {
      c.returned = h.clock + kOverhead / 4;
      h.in_group.push_back(index);
    }
    t.calls.push_back(c);
    int me = static_cast<int>(job_.position(one.comm, r));
    if (way == 0) collectives_[{one.comm, c.number}].push_back({r, index});
    if (way == 1) messages_[{one.comm, me, one.peer, c.number}].push_back({r, index});
    if (way == 2) messages_[{one.comm, one.peer, me, c.number}].push_back({r, index});
    if (h.depth) return true;
    push(r, one.stream, {Item::Kind::kCalls, h.clock + kOverhead / 2, {index}});
    h.queued_now = true;
  }
  double until = 0;
  CallTimes& mine = t.calls.back();
  if (job_.hosts == Hosts::kInside) {
    const Stream& s = h.streams[static_cast<std::size_t>(one.stream)];
    if (s.resolved < s.items.size()) return false;
    until = s.items.back().end;
  } else if (!until_room(r, one.stream, &until)) {
    return false;
  }
  h.queued_now = false;
  h.clock = std::max(h.clock + kOverhead / 2, until);
  mine.returned = mine.issued = h.clock;
  return h.clock != kNever;
}

bool Machine::close_group(int r, const Instruction& one) {
  Host& h = host(r);
  RankTimes& t = times(r);
  if (h.depth > 1) {
    t.groups.push_back({h.clock, one.thread, --h.depth});
    return true;
  }
  if (!h.queued_now) {
    std::map<int, std::vector<std::size_t>> by_stream;
    for (std::size_t c : h.in_group) by_stream[t.calls[c].instruction->stream].push_back(c);
    for (auto& [stream, calls] : by_stream)
      push(r, stream, {Item::Kind::kCalls, h.clock + kOverhead / 2, std::move(calls)});
    h.queued_now = true;
    for (std::size_t c : h.in_group) t.calls[c].closing = h.clock;
    t.inside.push_back({h.clock, kNever, one.thread, "ncclGroupEnd"});
  }
  double until = 0;
  for (std::size_t c : h.in_group) {
    int stream = t.calls[c].instruction->stream;
    double room = 0;
    const Stream& s = h.streams[static_cast<std::size_t>(stream)];
    if (job_.hosts == Hosts::kInside) {
      if (s.resolved < s.items.size()) return false;
      room = s.items.back().end;
    } else if (!until_room(r, stream, &room)) {
      return false;
    }
    until = std::max(until, room);
  }
  h.queued_now = false;
  h.clock = std::max(h.clock + kOverhead / 2, until);
  t.inside.back().end = h.clock;
  for (std::size_t c : h.in_group) t.calls[c].issued = h.clock;
  if (h.clock == kNever) return false;
  h.depth = 0;
  t.groups.push_back({h.clock, one.thread, 0});
  return true;
}

bool Machine::wait_for_all(int r, const Instruction& one) {
  Host& h = host(r);
  RankTimes& t = times(r);
  double until = h.clock;
  if (!h.queued_now) {
    t.inside.push_back({h.clock, kNever, one.thread, "cudaDeviceSynchronize"});
    h.queued_now = true;
  }
  for (const Stream& stream : h.streams) {
    if (stream.resolved < stream.items.size()) return false;
    if (!stream.items.empty()) until = std::max(until, stream.items.back().end);
  }
  h.queued_now = false;
  t.inside.back().end = h.clock = until;
  return until != kNever;
}

// The next item of the stream, if all that it waits for is known.
bool Machine::resolve(int r, std::size_t s) {
  Host& h = host(r);
  Stream& stream = h.streams[s];
  if (stream.resolved >= stream.items.size()) return false;
  Item& item = stream.items[stream.resolved];
  double before = stream.resolved ? stream.items[stream.resolved - 1].end : 0;
  if (before == kNever) return false;  // nothing behind it ever comes
  if (item.kind == Item::Kind::kWait) {
    Stream& other = h.streams[static_cast<std::size_t>(item.other)];
    if (other.resolved < item.other_items) return false;
    double theirs = item.other_items ? other.items[item.other_items - 1].end : 0;
    item.reached = std::max(before, item.queued);
    item.end = std::max(item.reached, theirs);
    ++stream.resolved;
    return true;
  }
  bool changed = item.reached == kNever;
  item.reached = std::max(before, item.queued);
  if (item.reached > cut_off(r, Mishap::Kind::kDies)) {
    item.reached = kNever;
    return false;
  }
  if (item.kind == Item::Kind::kKernel) {
    item.end = item.reached + item.seconds;
    ++stream.resolved;
    return true;
  }
  double end = 0;
  bool complete = true;
  for (std::size_t c : item.calls) {
    times(r).calls[c].reached = item.reached;
    double one = kNever;
    complete = is_complete(r, c, &one) && complete;
    end = std::max(end, one);
  }
  if (!complete) return changed;
  item.end = end;
  for (std::size_t c : item.calls) times(r).calls[c].done = end;
  ++stream.resolved;
  return true;
}

// When the call ends, if it is known; kNever where it is known that it does not.
bool Machine::is_complete(int r, std::size_t index, double* end) {
  const CallTimes& mine = times(r).calls[index];
  const Instruction& one = *mine.instruction;
  const std::vector<int>& ranks = job_.comms[static_cast<std::size_t>(one.comm)].ranks;
  const Mishap* m = mishap(r);
  bool left =
      m && m->kind == Mishap::Kind::kGpuLeft && times(r).mishap != kNever && mine.enter >= times(r).mishap;
  int way = direction(one.op);
  if (way && one.op == Op::kSend && bytes_of(one) <= job_.eager_bytes) {
    *end = mine.reached + kTransfer;
    return true;
  }
  int me = static_cast<int>(job_.position(one.comm, r));
  const std::vector<Party>& parties = way == 0   ? collectives_[{one.comm, mine.number}]
                                      : way == 1 ? messages_[{one.comm, me, one.peer, mine.number}]
                                                 : messages_[{one.comm, one.peer, me, mine.number}];
  if (parties.size() < (way ? 2 : ranks.size())) return false;
  const Instruction& first = *times(parties[0].rank).calls[parties[0].call].instruction;
  bool agree = true;
  for (const Party& party : parties) {
    const Instruction& its = *times(party.rank).calls[party.call].instruction;
    bool same = way ? bytes_of(its) == bytes_of(first)
                    : its.op == first.op && its.root == first.root &&
                          (bytes_of(its) == bytes_of(first) || job_.counts_may_pass);
    agree = agree && same;
  }
  if (left) agree = false;  // its own GPU never gets out
  *end = completion(parties, agree);
  return *end != kNever;
}

double Machine::completion(const std::vector<Party>& parties, bool agree) {
  if (!agree) return kNever;
  double last = 0, dies = kNever;
  std::uint64_t bytes = 0;
  for (const Party& party : parties) {
    const CallTimes& its = times(party.rank).calls[party.call];
    last = std::max(last, its.reached);
    bytes = std::max(bytes, bytes_of(*its.instruction));
    dies = std::min(dies, cut_off(party.rank, Mishap::Kind::kDies));
  }
  double end = last + kTransfer + static_cast<double>(bytes) / 50e9;
  return end > dies ? kNever : end;
}

}  // namespace

History run(const Job& job, std::vector<Mishap> mishaps, Rng& rng) {
  // When a rank dies or stops is known only by running up to there.
  Rng again = rng;
  History history = Machine(job, mishaps, rng).go();
  bool timed = false;
  for (std::size_t r = 0; r < mishaps.size(); ++r) {
    bool at_time = mishaps[r].kind == Mishap::Kind::kDies || mishaps[r].kind == Mishap::Kind::kStops;
    if (!at_time || history.ranks[r].mishap == kNever) continue;
    mishaps[r].time = history.ranks[r].mishap + again.real(0, 0.002);
    timed = true;
  }
  if (!timed) return history;
  rng = again;
  history = Machine(job, mishaps, rng).go();
  for (std::size_t r = 0; r < mishaps.size(); ++r) {
    if (mishaps[r].time != kNever) history.ranks[r].mishap = mishaps[r].time;
  }
  return history;
}

}  // namespace dshang::schedules
