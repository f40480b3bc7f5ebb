// Healthy jobs of random shapes: what all of them have in common, and the training step of each.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "builder.h"

namespace dshang::schedules {
namespace {

using flight::DType;
using flight::ReduceOp;

enum class Shape { kDdp, kZero3, kTensorParallel, kPipeline, kExperts, kHybrid, kGeneration, kBare };

struct Layer {
  std::string name;
  std::uint64_t weights;
  int tag, line;
};

class Writer {
 public:
  Writer(Job& job, Rng& rng, Shape shape, bool is_long) : b_(job, rng), rng_(rng), job_(job), shape_(shape) {
    choose();
    if (is_long) steps_ *= 4;
  }
  void write();

 private:
  void choose();
  void choose_groups();
  void training_step(int step);
  void micro_batch(int step, bool last);
  void forward(bool training);
  void backward();
  void layer_forward(const Layer& layer, bool training);
  void layer_backward(const Layer& layer);
  void buckets();
  void experts(const CommOfRank& comm, const std::string& what);
  void exchange(const CommOfRank& comm);
  void pipeline_step();
  void generate();
  void optimizer(int step);
  void log();
  void save();
  void evaluate();
  void metrics();
  void bare_step();
  std::vector<std::size_t> order(std::size_t n);
  bool shards() const {
    return shape_ == Shape::kZero3 || shape_ == Shape::kGeneration || shape_ == Shape::kHybrid;
  }
  void gather(std::uint64_t count) { b_.collective(shard_, {Op::kAllGather, count, DType::kBF16}); }

  Builder b_;
  Rng& rng_;
  Job& job_;
  Shape shape_;
  std::vector<Layer> layers_;
  CommOfRank world_, shard_, replicas_, tensor_, experts_, pipe_;
  std::vector<std::vector<int>> stages_;  // ranks by stage
  int steps_ = 6, micro_ = 1, log_every_ = 0, save_every_ = 0, eval_every_ = 0, rounds_ = 0, metrics_ = 0;
  double compute_ = 0.01, idle_ = 0.001;
  bool shuffles_ = false, recompute_ = false, grouped_messages_ = true, all_to_all_ = false,
       one_f_one_b_ = false, waits_late_ = true, clips_ = true, broadcasts_ = false, barrier_first_ = false;
};

void Writer::choose() {
  job_.hosts = static_cast<Hosts>(rng_.below(4));
  b_.streams_per_comm = rng_.chance(0.5);
  steps_ = rng_.range(6, 12);
  compute_ = std::pow(10, rng_.real(-3.5, -1.7));
  // What a host may run ahead by is much less than what would be called a stall.
  job_.queue = std::max(8, std::min(job_.queue, static_cast<int>(0.1 * job_.stall_after / compute_)));
  idle_ = std::pow(10, rng_.real(-4, -2));
  micro_ = rng_.chance(0.4) ? rng_.range(2, 4) : 1;
  log_every_ = rng_.chance(0.6) ? rng_.range(1, 3) : 0;
  save_every_ = rng_.chance(0.4) ? rng_.range(2, 4) : 0;
  eval_every_ = rng_.chance(0.4) ? rng_.range(2, 4) : 0;
  metrics_ = rng_.chance(0.3) ? rng_.range(2, 4) : 0;
  rounds_ = rng_.range(2, 6);
  shuffles_ = rng_.chance(0.2);
  recompute_ = rng_.chance(0.3);
  grouped_messages_ = rng_.chance(0.6);
  all_to_all_ = rng_.chance(0.3);
  one_f_one_b_ = rng_.chance(0.5);
  waits_late_ = rng_.chance(0.5);
  clips_ = rng_.chance(0.7);
  broadcasts_ = rng_.chance(0.3);
  barrier_first_ = rng_.chance(0.3);
  bool equal = rng_.chance(0.3), one_line = rng_.chance(0.4);
  int count = rng_.range(3, 7);
  for (int i = 0; i < count; ++i) {
    std::uint64_t weights = static_cast<std::uint64_t>(equal ? 4096 : 1024 * (i + 2) + 64 * rng_.below(8));
    layers_.push_back({"layers." + std::to_string(i), weights, b_.new_tag(), one_line ? 40 : 40 + 3 * i});
  }
  choose_groups();
}

void Writer::choose_groups() {
  world_ = shard_ = b_.world();
  int n = job_.world;
  auto blocks = [&](int size) {
    std::vector<std::vector<int>> groups;
    for (int r = 0; r < n; ++r) {
      if (r % size == 0) groups.emplace_back();
      groups.back().push_back(r);
    }
    return groups;
  };
  auto strided = [&](int size) {
    std::vector<std::vector<int>> groups(static_cast<std::size_t>(size));
    for (int r = 0; r < n; ++r) groups[static_cast<std::size_t>(r % size)].push_back(r);
    return groups;
  };
  int half = n % 2 == 0 && n > 2 ? n / 2 : n;
  switch (shape_) {
    case Shape::kTensorParallel: {
      int size = n % 2 == 0 && n > 2 && rng_.chance(0.7) ? 2 : n;
      tensor_ = b_.split(blocks(size));
      replicas_ = b_.split(strided(size));
      break;
    }
    case Shape::kHybrid:
      shard_ = b_.split(blocks(half));
      replicas_ = b_.split(strided(half));
      break;
    case Shape::kExperts:
      experts_ = rng_.chance(0.5) ? b_.split(blocks(half)) : world_;
      break;
    case Shape::kPipeline: {
      int stages = n % 2 == 0 && n > 2 && rng_.chance(0.5) ? n / 2 : n;
      if (n >= 8 && rng_.chance(0.5)) stages = 4;
      pipe_ = n / stages > 1     ? b_.split(strided(n / stages))
              : rng_.chance(0.5) ? b_.split(blocks(n))
                                 : world_;
      stages_ = blocks(n / stages);
      replicas_ = n / stages > 1 ? b_.split(stages_) : CommOfRank(static_cast<std::size_t>(n), -1);
      break;
    }
    default:
      break;
  }
}

std::vector<std::size_t> Writer::order(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  if (shuffles_) rng_.shuffle(all);
  return all;
}

void Writer::write() {
  b_.function("train.py", "main", 1, [&] {
    b_.at(10);
    if (barrier_first_) b_.collective(world_, {Op::kAllReduce, 1, DType::kF32});
    b_.at(12);
    for (int i = rng_.below(3); i > 0; --i) {
      b_.rooted(world_, {Op::kBroadcast, static_cast<std::uint64_t>(512 * i), DType::kF32, ReduceOp::kNone},
                14);
    }
    b_.region(Region::kLoop, [&] {
      for (int step = 0; step < steps_; ++step) {
        b_.region(Region::kStep, [&] {
          b_.at(20);
          b_.step(step);
          b_.host(idle_);
          training_step(step);
        });
      }
      b_.mark(Kind::kLoopEnd);
    });
    b_.at(90);
    b_.collective(world_, {Op::kAllReduce, 1, DType::kF32});
    b_.sync();
  });
  b_.mark(Kind::kTeardown);
  b_.host(0.01);
  b_.mark(Kind::kQuit);
}

void Writer::training_step(int step) {
  if (shape_ == Shape::kBare) return bare_step();
  if (shape_ == Shape::kGeneration) generate();
  if (shape_ == Shape::kPipeline) {
    pipeline_step();
  } else {
    for (int i = 0; i < micro_; ++i) {
      auto one = [&] { micro_batch(step, i + 1 == micro_); };
      micro_ > 1 ? b_.region(Region::kRound, one) : one();
    }
  }
  optimizer(step);
  if (metrics_) metrics();
  if (log_every_ && step % log_every_ == 0) log();
  if (eval_every_ && step % eval_every_ == eval_every_ - 1) evaluate();
  if (save_every_ && step % save_every_ == save_every_ - 1) save();
}

void Writer::micro_batch(int, bool last) {
  b_.at(24);
  forward(true);
  b_.at(26);
  b_.region(Region::kBackward, [&] {
    b_.phase("backward", [&] {
      b_.thread = 1;
      b_.user_frames = false;
      backward();
      if (last && !shards()) buckets();
      b_.user_frames = true;
      b_.thread = 0;
    });
  });
}

void Writer::forward(bool training) {
  b_.region(Region::kForward, [&] {
    b_.phase("forward", [&] {
      b_.function("model.py", "Model.forward", 24, [&] {
        b_.at(30);
        if (broadcasts_ && training && !shards())
          b_.collective(world_, {Op::kBroadcast, 33, DType::kF32, ReduceOp::kNone});
        for (std::size_t i : order(layers_.size())) {
          b_.at(layers_[i].line);
          b_.module(layers_[i].name, layers_[i].tag, [&] { layer_forward(layers_[i], training); });
        }
      });
    });
  });
}

void Writer::layer_forward(const Layer& layer, bool) {
  if (shards()) gather(layer.weights);  // before the module is entered: from the line that calls it
  b_.function("model.py", "Layer.forward", layer.line, [&] {
    b_.kernel(compute_);
    if (!tensor_.empty()) {
      for (int i = 0; i < 2; ++i) {
        b_.at(72 + i);
        b_.collective(tensor_, {Op::kAllReduce, 2048, DType::kBF16});
      }
    }
    if (!experts_.empty()) experts(experts_, "forward");
  });
}

void Writer::backward() {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (!shards() && tensor_.empty() && experts_.empty()) {
      b_.kernel(compute_);
      continue;
    }
    b_.module(layers_[i].name, layers_[i].tag, [&] { layer_backward(layers_[i]); });
  }
}

void Writer::layer_backward(const Layer& layer) {
  if (shards()) gather(layer.weights);
  if (shards() && recompute_) gather(layer.weights);
  b_.kernel(2 * compute_);
  if (!tensor_.empty()) {
    for (int i = 0; i < 2; ++i) b_.collective(tensor_, {Op::kAllReduce, 2048, DType::kBF16});
  }
  if (!experts_.empty()) experts(experts_, "backward");
  if (!shards()) return;
  b_.collective(shard_, {Op::kReduceScatter, layer.weights, DType::kBF16, ReduceOp::kAvg, 0, !waits_late_});
  if (!replicas_.empty())
    b_.collective(replicas_, {Op::kAllReduce, layer.weights / 2, DType::kBF16, ReduceOp::kSum});
}

// Gradients of replicated weights.
void Writer::buckets() {
  const CommOfRank& comm = replicas_.empty() ? world_ : replicas_;
  b_.region(Region::kCollection, [&] {
    for (std::size_t i : order(layers_.size())) {
      b_.region(Region::kItem, [&] {
        b_.collective(
            comm, {Op::kAllReduce, 3 * layers_[i].weights + 7, DType::kF32, ReduceOp::kSum, 0, !waits_late_});
      });
    }
  });
  b_.wait_for(comm);
}

void Writer::experts(const CommOfRank& comm, const std::string&) {
  for (int way = 0; way < 2; ++way) {  // out and back
    b_.at(80 + way);
    if (all_to_all_) {
      b_.collective(comm, {Op::kAllToAll, 1536, DType::kBF16});
    } else {
      exchange(comm);
    }
    b_.kernel(compute_ / 2);
  }
}

// Uneven: each rank sends each other another number of tokens, sometimes none.
void Writer::exchange(const CommOfRank& comm) {
  int n = job_.world;
  std::vector<std::vector<std::uint64_t>> counts(static_cast<std::size_t>(n));
  for (auto& row : counts) {
    for (int to = 0; to < n; ++to)
      row.push_back(rng_.chance(0.1) ? 0 : static_cast<std::uint64_t>(1024 * rng_.range(1, 40)));
  }
  for (int rank = 0; rank < n; ++rank) {
    int c = comm[static_cast<std::size_t>(rank)];
    b_.group(rank, [&] {
      for (int peer : job_.comms[static_cast<std::size_t>(c)].ranks) {
        auto r = static_cast<std::size_t>(rank), p = static_cast<std::size_t>(peer);
        if (peer == rank) continue;
        if (counts[r][p]) b_.send(comm, rank, peer, counts[r][p], true);
        if (counts[p][r]) b_.receive(comm, peer, rank, counts[p][r], true);
      }
    });
  }
}

void Writer::pipeline_step() {
  int stages = static_cast<int>(stages_.size()), micros = std::max(micro_, 2) + 1;
  constexpr std::uint64_t kActivations = 65536;
  for (int stage = 0; stage < stages; ++stage) {
    for (std::size_t column = 0; column < stages_[static_cast<std::size_t>(stage)].size(); ++column) {
      int rank = stages_[static_cast<std::size_t>(stage)][column];
      auto at = [&](int s) { return stages_[static_cast<std::size_t>(s)][column]; };
      auto alone = [&](const std::function<void()>& write) {
        grouped_messages_ ? b_.group(rank, write) : b_.on({rank}, write);
      };
      auto receive_forward = [&](bool group) {
        if (stage > 0) b_.at(50), b_.receive(pipe_, at(stage - 1), rank, kActivations, group);
      };
      auto send_forward = [&](bool group) {
        if (stage + 1 < stages) b_.at(52), b_.send(pipe_, rank, at(stage + 1), kActivations, group);
      };
      auto receive_backward = [&](bool group) {
        if (stage + 1 < stages) b_.at(56), b_.receive(pipe_, at(stage + 1), rank, kActivations, group);
      };
      auto send_backward = [&](bool group) {
        if (stage > 0) b_.at(58), b_.send(pipe_, rank, at(stage - 1), kActivations, group);
      };
      auto part = [&](Region region, const char* name, const std::function<void()>& write) {
        b_.on({rank}, [&] { b_.region(region, [&] { b_.phase(name, write); }); });
      };
      auto one_forward = [&] {
        part(Region::kForward, "forward", [&] {
          alone([&] { receive_forward(grouped_messages_); });
          b_.kernel(compute_);
          alone([&] { send_forward(grouped_messages_); });
        });
      };
      auto one_backward = [&] {
        part(Region::kBackward, "backward", [&] {
          alone([&] { receive_backward(grouped_messages_); });
          b_.kernel(2 * compute_);
          alone([&] { send_backward(grouped_messages_); });
        });
      };
      if (!one_f_one_b_) {
        for (int i = 0; i < micros; ++i) one_forward();
        for (int i = 0; i < micros; ++i) one_backward();
        continue;
      }
      // One forward, one backward: neighbours exchange both in one group.
      int ahead = std::min(micros, stages - stage - 1), steady = micros - ahead;
      for (int i = 0; i < ahead; ++i) one_forward();
      if (steady > 0)
        part(Region::kForward, "forward", [&] { alone([&] { receive_forward(grouped_messages_); }); });
      for (int i = 0; i < steady; ++i) {
        part(Region::kForward, "forward", [&] {
          b_.kernel(compute_);
          b_.group(rank, [&] { send_forward(true), receive_backward(true); });
        });
        part(Region::kBackward, "backward", [&] {
          b_.kernel(2 * compute_);
          b_.group(rank, [&] {
            send_backward(true);
            if (i + 1 < steady) receive_forward(true);
          });
        });
      }
      for (int i = 0; i < ahead; ++i) one_backward();
    }
  }
  bool any = std::any_of(replicas_.begin(), replicas_.end(), [](int comm) { return comm >= 0; });
  if (any) {
    b_.at(60);
    buckets();
  }
}

void Writer::generate() {
  b_.at(22);
  int rounds = rng_.range(2, 2 + rounds_);
  b_.phase("generate", [&] {
    b_.function("model.py", "Model.generate", 22, [&] {
      for (int i = 0; i < rounds; ++i) {
        b_.region(Region::kRound, [&] {
          for (const Layer& layer : layers_) {
            b_.at(45);
            b_.module(layer.name, b_.new_tag(), [&] {
              gather(layer.weights);
              b_.kernel(compute_ / 2);
            });
          }
        });
      }
    });
  });
}

void Writer::optimizer(int) {
  b_.region(Region::kOptimizer, [&] {
    b_.phase("optimizer", [&] {
      b_.at(28);
      if (clips_) b_.collective(world_, {Op::kAllReduce, 1, DType::kF32});
      if (job_.hosts == Hosts::kSyncSome) b_.sync();
      b_.kernel(compute_);
    });
  });
}

// A dictionary of values, each reduced for itself.
void Writer::metrics() {
  b_.region(Region::kCollection, [&] {
    for (int i = 0; i < metrics_; ++i) {
      b_.region(Region::kItem, [&] {
        b_.at(64 + i);
        b_.collective(world_, {Op::kAllReduce, 4, DType::kF32});
      });
    }
  });
}

void Writer::log() {
  b_.region(Region::kLog, [&] {
    b_.at(30);
    b_.collective(world_, {Op::kAllReduce, 2, DType::kF32, ReduceOp::kAvg});
    if (job_.hosts != Hosts::kAhead) b_.sync();
    b_.on({0}, [&] { b_.host(5 * idle_); });
  });
}

void Writer::save() {
  b_.region(Region::kSave, [&] {
    b_.phase("save", [&] {
      b_.function("train.py", "save_checkpoint", 34, [&] {
        b_.at(110);
        if (shards()) {
          for (const Layer& layer : layers_) gather(layer.weights);
        }
        b_.on({0}, [&] { b_.host(20 * idle_); });
        b_.at(114);
        b_.collective(world_, {Op::kAllReduce, 1, DType::kI32});
      });
    });
  });
}

void Writer::evaluate() {
  if (shape_ == Shape::kPipeline) return;
  b_.region(Region::kEval, [&] {
    b_.phase("eval", [&] {
      b_.function("train.py", "evaluate", 36, [&] {
        for (int i = rng_.range(2, 3); i > 0; --i) {
          b_.region(Region::kRound, [&] {
            b_.at(124);
            forward(false);
          });
        }
        b_.at(128);
        b_.collective(world_, {Op::kAllReduce, 3, DType::kF32});
      });
    });
  });
}

// No framework: a loop of calls that says nothing of itself.
void Writer::bare_step() {
  for (const Layer& layer : layers_) {
    b_.kernel(compute_);
    b_.at(layer.line);
    switch (layer.weights % 5) {
      case 0:
        b_.collective(world_, {Op::kAllGather, layer.weights, DType::kF16});
        break;
      case 1:
        b_.rooted(world_, {Op::kBroadcast, layer.weights, DType::kF32, ReduceOp::kNone, job_.world - 1},
                  layer.line + 1);
        break;
      case 2:
        b_.rooted(world_, {Op::kReduce, layer.weights, DType::kF32}, layer.line + 1);
        break;
      default:
        b_.collective(world_, {Op::kAllReduce, layer.weights, DType::kF32});
    }
  }
  if (job_.hosts == Hosts::kSyncSome) b_.sync();
}

Recorded choose_recorded(Rng& rng, Shape shape) {
  Recorded recorded;
  recorded.marks = rng.chance(0.9);
  recorded.start_marks = recorded.marks && rng.chance(0.9);
  recorded.sites = rng.chance(0.65);
  recorded.steps = rng.chance(0.65) && shape != Shape::kBare;
  recorded.phases = recorded.steps && rng.chance(0.7);
  recorded.modules = recorded.phases && rng.chance(0.7);
  return recorded;
}

}  // namespace

Job make_job(std::uint64_t seed, bool is_long) {
  static constexpr const char* kShapes[] = {"ddp",     "zero3",  "tensor-parallel", "pipeline",
                                            "experts", "hybrid", "generation",      "bare"};
  Rng rng(seed * 2 + 1);
  Job job;
  job.seed = seed;
  auto shape = static_cast<Shape>(rng.below(8));
  job.shape = kShapes[static_cast<std::size_t>(shape)];
  job.world = rng.of(std::vector<int>{2, 3, 4, 4, 4, 6, 8, 8});
  job.stall_after = rng.real(5, 30);
  job.queue = rng.chance(0.2) ? 8 : rng.range(32, 256);
  job.eager_bytes = rng.chance(0.5) ? 0 : 1u << 16;
  job.counts_may_pass = rng.chance(0.2);
  job.recorded = choose_recorded(rng, shape);
  Writer(job, rng, shape, is_long).write();
  if (!is_long && rng.chance(0.2)) {
    std::size_t longest = 0;
    for (const Program& program : job.programs) {
      longest = std::max(longest, static_cast<std::size_t>(std::count_if(
                                      program.begin(), program.end(),
                                      [](const Instruction& one) { return one.kind == Kind::kCall; })));
    }
    job.ring = std::max<std::uint64_t>(64, longest * 2 / 3);
  }
  return job;
}

}  // namespace dshang::schedules
