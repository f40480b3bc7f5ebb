#include "faults.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace dshang::schedules {
namespace {

struct Place {
  std::size_t begin, end;  // instructions
  Region region;
  int tag;
  std::int64_t step;
};

bool is_message(const Instruction& one) { return one.op == Op::kSend || one.op == Op::kRecv; }
bool is_collective(const Instruction& one) { return one.kind == Kind::kCall && !is_message(one); }

class Injector {
 public:
  Injector(Job& job, std::vector<Mishap>& mishaps, Rng& rng) : job_(job), mishaps_(mishaps), rng_(rng) {
    choose_suspects();
    steps_ = 0;
    for (const Instruction& one : program()) steps_ += one.kind == Kind::kStep;
    step_ = rng_.range(2, std::max(2, steps_ - 2));
  }

  std::optional<Fault> argument_mismatch();
  std::optional<Fault> order_differs();
  std::optional<Fault> module_skipped();
  std::optional<Fault> backward_skipped();
  std::optional<Fault> uneven_steps();
  std::optional<Fault> early_return();
  std::optional<Fault> rank_conditional_call();
  std::optional<Fault> rank_dead();
  std::optional<Fault> host_stall();
  std::optional<Fault> repeat_count_differs();
  std::optional<Fault> site_mismatch();
  std::optional<Fault> comm_order_cycle();
  std::optional<Fault> p2p_unmatched();
  std::optional<Fault> group_unclosed();
  std::optional<Fault> rank_frozen();
  std::optional<Fault> straggler();

 private:
  Program& program(int rank) { return job_.programs[static_cast<std::size_t>(rank)]; }
  Program& program() { return program(suspects_[0]); }
  void choose_suspects();
  void alone() { suspects_.resize(1); }
  std::vector<Place> places(int rank, Region region, std::int64_t step = -1);
  // The regions of `all` in which something is called.
  std::vector<Place> with_calls(std::vector<Place> all, bool messages_too = false);
  const Place* any(const std::vector<Place>& all) { return all.empty() ? nullptr : &rng_.of(all); }
  void remove(int rank, const Place& place);
  void remove_tag(Region region, int tag, std::int64_t step);
  Fault fault(const std::string& type, const std::string& how, std::vector<std::string> also = {}) {
    also.insert(also.begin(), type);
    return {type, how, std::move(also), suspects_, false};
  }
  std::vector<std::size_t> indices(const std::function<bool(const Instruction&)>& fits);
  void mishap(Mishap::Kind kind, std::size_t at, int code = 0);
  std::optional<Fault> left_out_region(Region region, const std::string& how);

  Job& job_;
  std::vector<Mishap>& mishaps_;
  Rng& rng_;
  std::vector<int> suspects_;
  int steps_ = 0, step_ = 2;
};

// One rank mostly; else some, fewer than half.
void Injector::choose_suspects() {
  suspects_ = {rng_.below(job_.world)};
  int most = (job_.world - 1) / 2;
  if (most < 2 || !rng_.chance(0.25)) return;
  for (int wanted = rng_.range(2, most); static_cast<int>(suspects_.size()) < wanted;) {
    int rank = rng_.below(job_.world);
    if (!std::count(suspects_.begin(), suspects_.end(), rank)) suspects_.push_back(rank);
  }
  std::sort(suspects_.begin(), suspects_.end());
}

std::vector<Place> Injector::places(int rank, Region region, std::int64_t wanted) {
  std::vector<Place> all;
  const Program& p = program(rank);
  std::int64_t step = -1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i].kind == Kind::kStep) step = p[i].step;
    if (p[i].kind != Kind::kBegin || p[i].region != region) continue;
    std::int64_t its = region == Region::kStep ? step + 1 : step;
    if (wanted < 0 || its == wanted) all.push_back({i, end_of_region(p, i), region, p[i].tag, its});
  }
  return all;
}

std::vector<Place> Injector::with_calls(std::vector<Place> all, bool messages_too) {
  std::erase_if(all, [&](const Place& place) {
    return std::none_of(program().begin() + static_cast<std::ptrdiff_t>(place.begin),
                        program().begin() + static_cast<std::ptrdiff_t>(place.end),
                        [&](const Instruction& one) {
                          return is_collective(one) || (messages_too && one.kind == Kind::kCall);
                        });
  });
  return all;
}

void Injector::remove(int rank, const Place& place) {
  Program& p = program(rank);
  p.erase(p.begin() + static_cast<std::ptrdiff_t>(place.begin),
          p.begin() + static_cast<std::ptrdiff_t>(place.end));
}

void Injector::remove_tag(Region region, int tag, std::int64_t step) {
  for (int rank : suspects_) {
    for (bool more = true; more;) {
      more = false;
      for (const Place& place : places(rank, region, step)) {
        if (place.tag != tag) continue;
        remove(rank, place);
        more = true;
        break;
      }
    }
  }
}

std::vector<std::size_t> Injector::indices(const std::function<bool(const Instruction&)>& fits) {
  std::vector<std::size_t> all;
  std::int64_t step = -1;
  for (std::size_t i = 0; i < program().size(); ++i) {
    const Instruction& one = program()[i];
    if (one.kind == Kind::kStep) step = one.step;
    if (step >= step_ && step < steps_ - 1 && fits(one)) all.push_back(i);
  }
  return all;
}

void Injector::mishap(Mishap::Kind kind, std::size_t at, int code) {
  alone();
  mishaps_.resize(static_cast<std::size_t>(job_.world));
  Mishap& m = mishaps_[static_cast<std::size_t>(suspects_[0])];
  m.kind = kind;
  m.at = at;
  m.code = code;
}

std::optional<Fault> Injector::argument_mismatch() {
  std::vector<std::size_t> all = indices(is_collective);
  if (all.empty()) return std::nullopt;
  Instruction changed = program()[rng_.of(all)];
  std::string how;
  int form = rng_.below(4);
  if (form == 0 && changed.reduce_op != flight::ReduceOp::kNone) {
    how = "reduce op";
    changed.reduce_op = flight::ReduceOp::kMax;
  } else if (form == 1 && changed.root >= 0) {
    how = "root";
    changed.root = (changed.root + 1) %
                   static_cast<int>(job_.comms[static_cast<std::size_t>(changed.comm)].ranks.size());
  } else if (form == 2) {
    how = "dtype";
    changed.dtype = changed.dtype == flight::DType::kF32 ? flight::DType::kBF16 : flight::DType::kF32;
  } else {
    how = "count";
    changed.count = rng_.chance(0.5) ? changed.count * 2 : changed.count + 13;
  }
  for (int rank : suspects_) {
    for (Instruction& one : program(rank)) {
      if (one.purpose != changed.purpose || !is_collective(one)) continue;
      one.count = changed.count, one.dtype = changed.dtype;
      one.reduce_op = changed.reduce_op, one.root = changed.root;
    }
  }
  return fault("argument-mismatch", how);
}

std::optional<Fault> Injector::order_differs() {
  bool modules = rng_.chance(0.4);
  std::vector<Place> all;
  if (modules) {
    for (const Place& forward : places(suspects_[0], Region::kForward, step_)) {
      for (const Place& one : with_calls(places(suspects_[0], Region::kModule, step_))) {
        if (one.begin > forward.begin && one.end < forward.end) all.push_back(one);
      }
      if (!all.empty()) break;
    }
  } else {
    all = places(suspects_[0], Region::kItem, step_);
  }
  if (all.size() < 2) return std::nullopt;
  std::size_t at = static_cast<std::size_t>(rng_.below(static_cast<int>(all.size()) - 1));
  int tag = all[at].tag, next = all[at + 1].tag;
  auto signature = [&](const Place& place) {
    std::vector<std::uint64_t> values;
    for (std::size_t i = place.begin; i < place.end; ++i) {
      const Instruction& one = program()[i];
      if (is_collective(one))
        values.insert(values.end(),
                      {static_cast<std::uint64_t>(one.op), one.count, static_cast<std::uint64_t>(one.dtype)});
    }
    return values;
  };
  if (signature(all[at]) == signature(all[at + 1])) return std::nullopt;
  Region region = modules ? Region::kModule : Region::kItem;
  for (int rank : suspects_) {
    std::vector<Place> mine = places(rank, region, step_);
    auto first = std::find_if(mine.begin(), mine.end(), [&](const Place& one) { return one.tag == tag; });
    if (first == mine.end() || first + 1 == mine.end()) return std::nullopt;
    auto second = first + 1;
    if (second->tag != next || second->begin < first->end) return std::nullopt;
    Program& p = program(rank);
    std::rotate(p.begin() + static_cast<std::ptrdiff_t>(first->begin),
                p.begin() + static_cast<std::ptrdiff_t>(second->begin),
                p.begin() + static_cast<std::ptrdiff_t>(second->end));
  }
  return fault("order-differs", modules ? "two modules" : "two items");
}

std::optional<Fault> Injector::module_skipped() {
  std::vector<Place> all = with_calls(places(suspects_[0], Region::kModule, step_), true);
  // Modules of a loop that repeats the same ones are rounds, not these.
  const Place* one = any(all);
  if (!one) return std::nullopt;
  std::set<int> forward;
  for (const Place& pass : places(suspects_[0], Region::kForward, step_)) {
    for (const Place& module : all) {
      if (module.begin > pass.begin && module.end < pass.end) forward.insert(module.tag);
    }
  }
  if (!forward.count(one->tag)) return std::nullopt;
  bool last = true;  // of its forward pass: then the rank has returned before it, which is the same
  for (const Place& pass : places(suspects_[0], Region::kForward, step_)) {
    bool inside = one->begin > pass.begin && one->end < pass.end;
    for (const Place& module : all)
      last = last && !(inside && module.begin > one->end && module.end < pass.end);
  }
  remove_tag(Region::kModule, one->tag, step_);
  Fault f = fault("module-skipped", "forward and backward");
  if (last) f.allowed.push_back("early-return");
  return f;
}

std::optional<Fault> Injector::backward_skipped() {
  if (job_.shape == "pipeline") return std::nullopt;
  const std::vector<Place> all = with_calls(places(suspects_[0], Region::kBackward, step_), true);
  if (all.empty()) return std::nullopt;
  remove_tag(Region::kBackward, all.back().tag, step_);
  return fault("backward-skipped", all.size() > 1 ? "the last of several" : "the only one");
}

std::optional<Fault> Injector::uneven_steps() {
  for (int rank : suspects_) {
    std::vector<Place> steps = places(rank, Region::kStep);
    while (steps.size() > static_cast<std::size_t>(step_) + 1) {
      remove(rank, steps.back());
      steps.pop_back();
    }
  }
  return fault("uneven-steps", "fewer batches");
}

std::optional<Fault> Injector::early_return() {
  int form = rng_.below(3);
  if (form == 0) {  // break: no end of the data is met
    uneven_steps();
    for (int rank : suspects_)
      std::erase_if(program(rank), [](const Instruction& one) { return one.kind == Kind::kLoopEnd; });
    return fault("early-return", "break", {"uneven-steps"});
  }
  if (form == 1) {  // the process ends
    for (int rank : suspects_) {
      std::vector<Place> steps = places(rank, Region::kStep);
      std::size_t end = steps[static_cast<std::size_t>(step_)].end;
      Program& p = program(rank);
      p.resize(end);
      Instruction quit;
      quit.kind = Kind::kQuit;
      p.push_back(quit);
    }
    return fault("early-return", "ends normally", {"uneven-steps"});
  }
  std::vector<Place> passes = places(suspects_[0], Region::kForward, step_);
  std::vector<int> tags;
  for (const Place& module : with_calls(places(suspects_[0], Region::kModule, step_), true)) {
    if (!passes.empty() && module.begin > passes[0].begin && module.end < passes[0].end)
      tags.push_back(module.tag);
  }
  if (tags.size() < 3) return std::nullopt;
  for (std::size_t from = static_cast<std::size_t>(rng_.range(1, static_cast<int>(tags.size()) - 1));
       from < tags.size(); ++from)
    remove_tag(Region::kModule, tags[from], step_);
  return fault("early-return", "from forward", {"module-skipped"});
}

std::optional<Fault> Injector::left_out_region(Region region, const std::string& how) {
  std::vector<Place> all = with_calls(places(suspects_[0], region));
  std::erase_if(all, [&](const Place& one) { return one.step < step_ || one.step + 1 >= steps_; });
  const Place* one = any(all);
  if (!one) return std::nullopt;
  remove_tag(region, one->tag, one->step);
  return fault("rank-conditional-call", how);
}

std::optional<Fault> Injector::rank_conditional_call() {
  int form = rng_.below(4);
  if (form == 1) return left_out_region(Region::kLog, "log left out");
  if (form == 2) return left_out_region(Region::kSave, "save left out");
  if (form == 3) return left_out_region(Region::kEval, "evaluation left out");
  bool saves = rng_.chance(0.4);
  // At the end of a step, in a function of its own.
  Site site = {{"site-packages/torch/distributed/distributed_c10d.py", "collective", 2810},
               {"train.py", saves ? "save_best" : "log_metrics", 210},
               {"train.py", "main", 38}};
  Instruction one;
  one.kind = Kind::kCall;
  one.op = rng_.chance(0.5) ? Op::kAllReduce : Op::kAllGather;
  one.count = rng_.chance(0.5) ? 1 : 77;
  one.dtype = flight::DType::kF32;
  if (one.op == Op::kAllReduce) one.reduce_op = flight::ReduceOp::kSum;
  one.comm = 0;
  for (const Instruction& other : program()) {
    if (is_collective(other) && other.comm == 0) one.stream = other.stream;
  }
  one.site = static_cast<int>(job_.sites.size());
  job_.sites.push_back(site);
  one.purpose = ++job_.purposes;
  std::vector<Instruction> added = {one};
  if (job_.hosts == Hosts::kSyncEach) {
    Instruction sync;
    sync.kind = Kind::kSync;
    added.push_back(sync);
  }
  if (saves) {
    Instruction phase;
    phase.kind = Kind::kPhasePush;
    phase.name = static_cast<int>(job_.names.size());
    job_.names.push_back("save");
    added.insert(added.begin(), phase);
    phase.kind = Kind::kPhasePop;
    added.push_back(phase);
  }
  for (int rank : suspects_) {
    std::vector<Place> steps = places(rank, Region::kStep);
    std::size_t at = steps[static_cast<std::size_t>(step_)].end - 1;
    program(rank).insert(program(rank).begin() + static_cast<std::ptrdiff_t>(at), added.begin(), added.end());
  }
  return fault("rank-conditional-call", saves ? "save added" : "log added");
}

std::optional<Fault> Injector::rank_dead() {
  static const std::vector<int> codes = {9, 9, 11, 6, -1, -3};
  std::vector<std::size_t> all = indices([](const Instruction& one) { return one.kind != Kind::kEnd; });
  int code = rng_.of(codes);
  mishap(Mishap::Kind::kDies, rng_.of(all), code);
  return fault("rank-dead", code > 0 ? "signal" : "exit status");
}

std::optional<Fault> Injector::host_stall() {
  std::vector<std::size_t> all = indices([](const Instruction& one) {
    return one.kind == Kind::kHost || one.kind == Kind::kCall || one.kind == Kind::kStep;
  });
  bool works = rng_.chance(0.4);
  std::size_t at = rng_.of(all);
  int depth = 0;
  for (std::size_t i = 0; i < at; ++i)
    depth += (program()[i].kind == Kind::kGroupStart) - (program()[i].kind == Kind::kGroupEnd);
  mishap(works ? Mishap::Kind::kWorks : Mishap::Kind::kBlocks, at);
  Fault f = fault("host-stall", works ? "busy" : "asleep");
  if (depth > 0) f.allowed.push_back("group-unclosed");
  return f;
}

std::optional<Fault> Injector::repeat_count_differs() {
  if (job_.shape == "pipeline") return std::nullopt;
  std::vector<Place> all = with_calls(places(suspects_[0], Region::kRound));
  std::erase_if(all, [&](const Place& one) { return one.step < step_ || one.step + 1 >= steps_; });
  // Where gradients are reduced once, behind the last micro-batch, another number of those shows in nothing.
  if (job_.shape != "zero3" && job_.shape != "hybrid" && job_.shape != "generation") {
    std::erase_if(all, [&](const Place& one) {
      return std::any_of(program().begin() + static_cast<std::ptrdiff_t>(one.begin),
                         program().begin() + static_cast<std::ptrdiff_t>(one.end), [](const Instruction& i) {
                           return i.kind == Kind::kBegin && i.region == Region::kBackward;
                         });
    });
  }
  const Place* one = any(all);
  if (!one) return std::nullopt;
  // Of equal rounds it cannot be said which one is missing: the last one is.
  for (bool later = true; later;) {
    later = false;
    for (const Place& next : all) {
      if (next.begin == one->end) one = &next, later = true;
    }
  }
  bool fewer = rng_.chance(0.6);
  int tag = one->tag;
  std::int64_t step = one->step;
  if (fewer) {
    remove_tag(Region::kRound, tag, step);
    return fault("repeat-count-differs", "fewer");
  }
  std::map<std::uint64_t, std::uint64_t> fresh;  // purposes of the round made once more
  for (int rank : suspects_) {
    for (const Place& place : places(rank, Region::kRound, step)) {
      if (place.tag != tag) continue;
      Program& p = program(rank);
      Program copy(p.begin() + static_cast<std::ptrdiff_t>(place.begin),
                   p.begin() + static_cast<std::ptrdiff_t>(place.end));
      for (Instruction& i : copy) {
        if (i.kind != Kind::kCall) continue;
        auto [found, is_new] = fresh.emplace(i.purpose, 0);
        if (is_new) found->second = ++job_.purposes;
        i.purpose = found->second;
      }
      p.insert(p.begin() + static_cast<std::ptrdiff_t>(place.end), copy.begin(), copy.end());
      break;
    }
  }
  return fault("repeat-count-differs", "more");
}

// Two equal calls from different lines, in another order from some step on.
std::optional<Fault> Injector::site_mismatch() {
  if (!job_.recorded.sites || steps_ < 7) return std::nullopt;
  step_ = std::min(step_, steps_ - 4);
  bool any_swapped = false;
  for (int rank : suspects_) {
    for (std::int64_t step = step_; step < steps_; ++step) {
      std::vector<Place> items = places(rank, Region::kItem, step);
      std::erase_if(items, [&](const Place& one) {  // of the metrics: equal arguments
        return std::none_of(program(rank).begin() + static_cast<std::ptrdiff_t>(one.begin),
                            program(rank).begin() + static_cast<std::ptrdiff_t>(one.end),
                            [](const Instruction& i) { return is_collective(i) && i.count == 4; });
      });
      if (items.size() < 2) continue;
      Program& p = program(rank);
      std::rotate(p.begin() + static_cast<std::ptrdiff_t>(items[0].begin),
                  p.begin() + static_cast<std::ptrdiff_t>(items[1].begin),
                  p.begin() + static_cast<std::ptrdiff_t>(items[1].end));
      any_swapped = true;
    }
  }
  if (!any_swapped) return std::nullopt;
  Fault f = fault("site-mismatch", "two metrics crossed");
  f.silent = true;
  return f;
}

std::optional<Fault> Injector::comm_order_cycle() {
  if (job_.comms.size() < 2) return std::nullopt;
  std::vector<std::size_t> all = indices([](const Instruction& one) { return one.kind == Kind::kCall; });
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const Instruction &a = program()[all[i]], &b = program()[all[i + 1]];
    if (a.comm != b.comm && is_collective(a) && is_collective(b)) pairs.emplace_back(all[i], all[i + 1]);
  }
  if (pairs.empty()) return std::nullopt;
  auto [first, second] = rng_.of(pairs);
  std::uint64_t a = program()[first].purpose, b = program()[second].purpose;
  for (int rank : suspects_) {
    Program& p = program(rank);
    auto at = [&](std::uint64_t purpose) {
      return std::find_if(p.begin(), p.end(), [&](const Instruction& one) {
        return one.kind == Kind::kCall && one.purpose == purpose;
      });
    };
    if (at(a) == p.end() || at(b) == p.end()) return std::nullopt;
    std::iter_swap(at(a), at(b));
  }
  return fault("comm-order-cycle", "two communicators");
}

std::optional<Fault> Injector::p2p_unmatched() {
  alone();
  std::vector<std::size_t> all =
      indices([](const Instruction& one) { return one.kind == Kind::kCall && is_message(one); });
  if (all.empty()) return std::nullopt;
  std::size_t at = rng_.of(all);
  Program& p = program();
  if (rng_.chance(0.6)) {
    p.erase(p.begin() + static_cast<std::ptrdiff_t>(at));
    return fault("p2p-unmatched", "left out");
  }
  Instruction twice = p[at];
  twice.purpose = ++job_.purposes;
  p.insert(p.begin() + static_cast<std::ptrdiff_t>(at), twice);
  return fault("p2p-unmatched", "once more");
}

std::optional<Fault> Injector::group_unclosed() {
  alone();
  std::vector<std::size_t> all = indices([](const Instruction& one) { return one.kind == Kind::kGroupEnd; });
  if (all.empty()) return std::nullopt;
  program().erase(program().begin() + static_cast<std::ptrdiff_t>(rng_.of(all)));
  return fault("group-unclosed", "no end");
}

std::optional<Fault> Injector::rank_frozen() {
  std::vector<std::size_t> all = indices(is_collective);
  if (all.empty()) return std::nullopt;
  int form = job_.recorded.start_marks ? rng_.below(3) : 0;
  Mishap::Kind kind = form == 0   ? Mishap::Kind::kStops
                      : form == 1 ? Mishap::Kind::kGpuStuck
                                  : Mishap::Kind::kGpuLeft;
  mishap(kind, rng_.of(all));
  return fault("rank-frozen", form == 0   ? "stopped"
                              : form == 1 ? "stream held up"
                                          : "does not leave the call");
}

std::optional<Fault> Injector::straggler() {
  if (steps_ < 12 || job_.shape == "pipeline" || job_.hosts == Hosts::kAhead || !job_.recorded.marks)
    return std::nullopt;
  mishap(Mishap::Kind::kSlow, 0);
  mishaps_[static_cast<std::size_t>(suspects_[0])].seconds = rng_.real(0.6, 1.5);
  Fault f = fault("straggler", "late in each step");
  f.silent = true;
  return f;
}

using Method = std::optional<Fault> (Injector::*)();
const std::vector<std::pair<std::string, Method>>& methods() {
  static const std::vector<std::pair<std::string, Method>> all = {
      {"argument-mismatch", &Injector::argument_mismatch},
      {"order-differs", &Injector::order_differs},
      {"module-skipped", &Injector::module_skipped},
      {"backward-skipped", &Injector::backward_skipped},
      {"uneven-steps", &Injector::uneven_steps},
      {"early-return", &Injector::early_return},
      {"rank-conditional-call", &Injector::rank_conditional_call},
      {"rank-dead", &Injector::rank_dead},
      {"host-stall", &Injector::host_stall},
      {"repeat-count-differs", &Injector::repeat_count_differs},
      {"site-mismatch", &Injector::site_mismatch},
      {"comm-order-cycle", &Injector::comm_order_cycle},
      {"p2p-unmatched", &Injector::p2p_unmatched},
      {"group-unclosed", &Injector::group_unclosed},
      {"rank-frozen", &Injector::rank_frozen},
      {"straggler", &Injector::straggler}};
  return all;
}

}  // namespace

const std::vector<std::string>& fault_types() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const auto& [name, method] : methods()) names.push_back(name);
    return names;
  }();
  return all;
}

std::optional<Fault> inject(Job& job, std::vector<Mishap>& mishaps, const std::string& type, Rng& rng) {
  Injector injector(job, mishaps, rng);
  for (const auto& [name, method] : methods()) {
    if (name == type) return (injector.*method)();
  }
  return std::nullopt;
}

}  // namespace dshang::schedules
