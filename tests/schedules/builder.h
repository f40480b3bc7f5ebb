// Writes the programs of all ranks side by side: what is emitted is emitted for every active rank.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "program.h"

namespace dshang::schedules {

struct Arguments {
  Op op = Op::kAllReduce;
  std::uint64_t count = 1;
  flight::DType dtype = flight::DType::kF32;
  flight::ReduceOp reduce_op = flight::ReduceOp::kSum;
  int root = 0;        // position, of rooted operations
  bool waited = true;  // what the program queues next on its own stream waits for the call
};

// Which communicator a rank makes a call in; -1 = it makes none.
using CommOfRank = std::vector<int>;

class Builder {
 public:
  Builder(Job& job, Rng& rng);

  Job& job;
  Rng& rng;
  bool streams_per_comm = false;  // as torch: each communicator has a stream of its own
  int thread = 0;                 // that makes the calls
  bool user_frames = true;        // the user's lines are on the stack (not so in the autograd thread)

  CommOfRank world() const { return CommOfRank(static_cast<std::size_t>(job.world), 0); }
  CommOfRank split(const std::vector<std::vector<int>>& groups);

  // `write` is emitted for these ranks only.
  void on(const std::vector<int>& ranks, const std::function<void()>& write);
  void region(Region region, const std::function<void()>& write, int tag = 0);
  // A function of the user's, called at `line` of the one that is being written.
  void function(const std::string& file, const std::string& name, int line,
                const std::function<void()>& write);
  void phase(const std::string& name, const std::function<void()>& write);
  void module(const std::string& name, int tag, const std::function<void()>& write);

  void at(int line) { line_ = line; }
  void collective(const CommOfRank& comm, const Arguments& arguments);
  // As `collective`, with the line `root_line` where the rank is the root.
  void rooted(const CommOfRank& comm, const Arguments& arguments, int root_line);
  // A message from one rank to another; `from` and `to` are global.
  void send(const CommOfRank& comm, int from, int to, std::uint64_t count, bool in_group);
  void receive(const CommOfRank& comm, int from, int to, std::uint64_t count, bool in_group);
  void group(int rank, const std::function<void()>& write);
  void wait_for(const CommOfRank& comm);  // the program's own stream waits for the communicator's
  void kernel(double seconds);            // about so long, on each rank for itself
  void host(double seconds);
  void sync();
  void step(std::int64_t number);
  void mark(Kind kind);  // kLoopEnd, kTeardown, kQuit
  std::uint64_t new_purpose() { return ++job.purposes; }
  int new_tag() { return ++job.tags; }

 private:
  struct Caller {
    std::string file, function;
    int line;
  };
  void emit(Instruction instruction);
  void emit_on(int rank, const Instruction& instruction);
  void call(int rank, int comm, Instruction instruction, bool waited);
  void message(const CommOfRank& comm, Op op, int rank, int peer, std::uint64_t count, bool in_group,
               std::uint64_t purpose);
  int site_here();
  int name(const std::string& text);

  std::vector<int> active_;
  std::vector<Caller> callers_;
  int line_ = 1;
  std::map<std::string, int> names_, sites_;
  std::map<std::pair<std::pair<int, int>, int>, std::vector<std::uint64_t>> sent_,
      received_;  // purposes of messages
};

}  // namespace dshang::schedules
