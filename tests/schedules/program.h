// A job as its programmer wrote it: one sequential program a rank, communicators, places in the source.
//
// Nothing here knows the analysis; machine.h says what such a job would do, recorder.h what would be recorded
// of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/flight/format.h"

namespace dshang::schedules {

// Equal on every machine for an equal seed, other than the distributions of the standard library.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  int range(int low, int high) { return low + below(high - low + 1); }  // both ends included
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double real(double low, double high) { return low + (high - low) * unit(); }
  bool chance(double p) { return unit() < p; }
  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }
  template <typename T>
  void shuffle(std::vector<T>& all) {
    for (std::size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[static_cast<std::size_t>(below(static_cast<int>(i)))]);
  }

 private:
  std::uint64_t state_;
};

enum class Op : std::uint8_t {
  kAllGather,
  kAllReduce,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSend,
  kRecv
};
const char* text_of(Op op);

enum class Kind : std::uint8_t {
  kCall,
  kGroupStart,
  kGroupEnd,
  kKernel,      // work of the program's own on the GPU, `seconds`
  kWaitStream,  // `stream` goes on when what `other` has been given by now is done
  kHost,        // work on the host, `seconds`
  kSync,        // the host waits for everything it has queued
  kStep,
  kPhasePush,
  kPhasePop,
  kEnter,
  kExit,
  kLoopEnd,
  kTeardown,
  kBegin,  // of a region of the program; does nothing
  kEnd,
  kQuit,  // the process ends with status 0
};

// What a stretch of the program is for: where mistakes are put.
enum class Region : std::uint8_t {
  kNone,
  kStep,
  kForward,
  kBackward,
  kModule,  // one module's part of a forward or backward pass
  kRound,   // one of several equal rounds: decode cycle, chunk, micro-batch
  kSave,
  kEval,
  kLog,
  kOptimizer,
  kCollection,  // a collection that is walked through: its items are kItem
  kItem,
  kLoop,  // the training loop
};

struct Instruction {
  Kind kind = Kind::kHost;
  Region region = Region::kNone;
  Op op = Op::kAllReduce;
  flight::DType dtype = flight::DType::kNone;
  flight::ReduceOp reduce_op = flight::ReduceOp::kNone;
  std::uint8_t thread = 0;
  int tag = 0;  // of a region: equal on all ranks, and for a module the same in forward and backward
  int comm = -1;
  int root = -1;  // position in the communicator
  int peer = -1;  // position in the communicator
  int stream = 0, other = 0;
  int site = -1;  // into Job::sites
  int name = -1;  // into Job::names: phase or module
  std::uint64_t count = 0;
  std::int64_t step = 0;
  double seconds = 0;
  std::uint64_t purpose = 0;  // calls that are meant for each other have the same on all ranks
};
using Program = std::vector<Instruction>;

struct Communicator {
  std::vector<int> ranks;  // global, by position
  int parent = -1;         // split from
  int color = 0;
};

struct Frame {
  std::string file, function;
  int line = 0;
};
using Site = std::vector<Frame>;  // innermost first

enum class Hosts { kInside, kSyncEach, kSyncSome, kAhead };
const char* text_of(Hosts hosts);

// What is recorded of the job besides its calls.
struct Recorded {
  bool steps = false, phases = false, modules = false, sites = false;
  bool marks = true, start_marks = true;
};

struct Job {
  std::uint64_t seed = 0;
  std::string shape;
  int world = 2;
  std::vector<Program> programs;  // by rank
  std::vector<Communicator> comms;
  std::vector<std::string> names;
  std::vector<Site> sites;
  Hosts hosts = Hosts::kInside;
  Recorded recorded;
  double stall_after = 30;
  int queue = 64;                 // calls that a stream takes before its host has to wait
  std::uint64_t ring = 16384;     // records of calls that are kept
  std::uint64_t eager_bytes = 0;  // a send of at most so many bytes completes without its receive
  bool counts_may_pass = false;   // a call with differing counts completes all the same
  std::uint64_t purposes = 0;     // given out so far
  int tags = 0;

  std::size_t position(int comm, int rank) const;  // ranks.size() = no member
};

// A healthy job of a random shape.
Job make_job(std::uint64_t seed, bool is_long = false);

// Index behind the end of the region that begins at `begin`.
std::size_t end_of_region(const Program& program, std::size_t begin);

}  // namespace dshang::schedules
