// Jobs as Flight Recorder dumps, for the tests beside it and for tests/bench/recorder_speed.py.
//   recorder_jobs snapshot FILE FOLDER        a snapshot of tests/golden
//   recorder_jobs missing RANKS CALLS FOLDER  one communicator; rank RANKS / 2 has not made the last call
//   recorder_jobs large RANKS CALLS FOLDER    one communicator; rank RANKS / 2 leaves out one call in the
//   last round, and all wait
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "core/job/parse.h"
#include "monitor/recorder_files.h"

namespace {

using namespace dshang;

constexpr std::uint64_t kStartReal = 1'700'000'000'000'000'000, kSecond = 1'000'000'000;
constexpr int kRound = 19, kDepth = 12;

void read_snapshot(job::Job& job, const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  job::Parsed parsed = job::parse(text.str(), job.names);
  if (!parsed.error.empty() || parsed.ranks.empty()) throw std::runtime_error(path + ": " + parsed.error);
  std::uint64_t newest = 0;
  for (job::RankRecords& records : parsed.ranks) {
    records.start_real_ns = kStartReal;
    for (std::uint64_t n = records.calls.first(); n < records.calls.end(); ++n) {
      newest = std::max({newest, records.calls.at(n).enter_ns, records.calls.at(n).done_ns});
    }
    job.journal.start_ns = records.start_ns;
    job.processes.push_back(std::make_unique<job::Process>());
    job.processes.back()->records = std::move(records);
  }
  job.journal.start_real_ns = kStartReal;
  job.journal.now_ns = newest + 60 * kSecond;
}

// Stacks as training has them, a line for each place in a round.
std::vector<job::SiteId> sites(job::Names& names) {
  std::vector<job::SiteId> all;
  for (int place = 0; place < kRound; ++place) {
    std::vector<job::FrameName> frames;
    for (int depth = 0; depth < kDepth; ++depth) {
      frames.push_back({names.name("/home/user/project/layer_" + std::to_string(depth) + ".py"),
                        names.name("forward_" + std::to_string(depth)), 10 + place});
    }
    all.push_back(names.site(std::move(frames), false));
  }
  return all;
}

// `done`: calls up to there are done; behind it the odd rank is one call ahead.
job::Call call_of(int rank, int odd, int done, int number, const std::vector<job::SiteId>& sites) {
  bool behind = rank == odd && number > done;
  int in_round = (number + (behind ? 1 : 0)) % kRound;
  job::Call call;
  call.number = static_cast<std::uint64_t>(number);
  call.op = in_round > 5 && in_round % 2 ? 1 : 0;
  call.count = 1000 + static_cast<std::uint64_t>(in_round);
  call.dtype = flight::DType::kBF16;
  call.reduce_op = call.op ? flight::ReduceOp::kSum : flight::ReduceOp::kNone;
  call.site = sites[static_cast<std::size_t>(in_round)];
  call.enter_ns = static_cast<std::uint64_t>(number) * 1'000'000;
  call.return_ns = call.enter_ns + 500;
  call.flags = flight::kCallReturned | flight::kCallMarked | flight::kCallStartMarked;
  if (number <= done) {
    call.flags |= flight::kCallStarted | flight::kCallDone;
    call.done_ns = call.return_ns + 1000;
  }
  return call;
}

void make_large(job::Job& job, int ranks, int calls, bool is_missing) {
  std::vector<job::SiteId> places = sites(job.names);
  for (int rank = 0; rank < ranks; ++rank) {
    job.processes.push_back(std::make_unique<job::Process>());
    job::RankRecords& records = job.processes.back()->records;
    records.rank = rank;
    records.world_size = ranks;
    records.start_real_ns = kStartReal;
    records.ops = {{"all_gather", flight::kOpCollective, 0},
                   {"reduce_scatter", flight::kOpCollective | flight::kOpReduces, 0}};
    job::Comm comm;
    comm.state = flight::CommState::kReady;
    comm.id = 1;
    comm.rank = rank;
    comm.size = ranks;
    records.comms.push_back(comm);
    bool stops = is_missing && rank == ranks / 2;
    for (int number = 1; number <= calls - (stops ? 1 : 0); ++number)
      records.calls.push(call_of(rank, is_missing ? -1 : ranks / 2, is_missing ? calls - 1 : calls - kRound,
                                 number, places));
  }
  job.journal.start_real_ns = kStartReal;
  job.journal.now_ns = static_cast<std::uint64_t>(calls) * 1'000'000 + 60 * kSecond;
}

}  // namespace

int main(int argc, char** argv) {
  job::Job job;
  try {
    if (argc == 4 && !std::strcmp(argv[1], "snapshot")) {
      read_snapshot(job, argv[2]);
    } else if (argc == 5 && (!std::strcmp(argv[1], "large") || !std::strcmp(argv[1], "missing"))) {
      make_large(job, std::atoi(argv[2]), std::atoi(argv[3]), !std::strcmp(argv[1], "missing"));
    } else {
      throw std::runtime_error("recorder_jobs snapshot FILE FOLDER | missing|large RANKS CALLS FOLDER");
    }
    for (const std::string& line : monitor::write_recorder_dumps(job, argv[argc - 1]))
      std::fprintf(stderr, "%s\n", line.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
