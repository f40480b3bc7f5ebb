#include "tests/unit/simnccl/ranks.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace {

constexpr auto kPatience = std::chrono::seconds(60);
using Clock = std::chrono::steady_clock;

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void play(Rank rank, const std::function<void(Rank&)>& body,
                       const std::vector<std::string>& environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("SIMGPU_DEVICES", "8", 1);
  for (const std::string& setting : environment) putenv(strdup(setting.c_str()));
  int status = 0;
  try {
    if (cudaSetDevice(rank.rank) != 0) throw Failure("cudaSetDevice failed");
    body(rank);
  } catch (const std::exception& failure) {
    fprintf(stderr, "rank %d: %s\n", rank.rank, failure.what());
    status = 1;
  }
  fflush(stderr);
  _exit(status);
}

}  // namespace

Buffer::Buffer(size_t bytes) {
  if (cudaMalloc(&address_, bytes) != 0) throw Failure("cudaMalloc failed");
}

void Buffer::put(const void* from, size_t bytes) {
  if (cudaMemcpy(address_, from, bytes, 1) != 0) throw Failure("cudaMemcpy to the device failed");
}

void Buffer::take(void* to, size_t bytes) const {
  if (cudaMemcpy(to, address_, bytes, 2) != 0) throw Failure("cudaMemcpy from the device failed");
}

simgpu::nccl::UniqueId Rank::id(int number) const {
  if (rank == 0) {
    success(ncclGetUniqueId(&board.id[number]), "ncclGetUniqueId");
    board.id_ready[number].store(1);
  }
  while (board.id_ready[number].load() == 0) pause(1);
  return board.id[number];
}

Comm Rank::comm(int number) const {
  Comm made = nullptr;
  success(ncclCommInitRank(&made, size, id(number), rank), "ncclCommInitRank");
  return made;
}

Stream Rank::stream() {
  Stream made = nullptr;
  if (cudaStreamCreateWithFlags(&made, 1) != 0) throw Failure("cudaStreamCreateWithFlags failed");
  return made;
}

void Rank::expect(bool holds, const char* what) const {
  if (!holds) throw Failure(std::string("does not hold: ") + what);
}

void Rank::success(int result, const char* what) const {
  if (result != 0) throw Failure(std::string(what) + " returned " + std::to_string(result));
}

bool Rank::done(Stream stream, int milliseconds) {
  const auto limit = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (cudaStreamQuery(stream) != 0) {
    if (Clock::now() > limit) return false;
    pause(1);
  }
  return true;
}

void Rank::pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

void Rank::await(int flag, int value) const {
  while (board.flags[flag].load() < value) pause(1);
}

std::vector<int> run_ranks(int size, const std::function<void(Rank&)>& body,
                           const std::vector<std::string>& environment) {
  void* shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Board& board = *static_cast<Board*>(shared);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t process = fork();
    if (process == 0) play(Rank(rank, size, board), body, environment);
    processes.push_back(process);
  }
  std::vector<int> statuses(size, kStuck);
  const auto limit = Clock::now() + kPatience;
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(processes[rank], &status, WNOHANG)) == 0 && Clock::now() < limit) Rank::pause(2);
    if (ended == 0) {
      kill(processes[rank], SIGKILL);
      waitpid(processes[rank], &status, 0);
      fprintf(stderr, "rank %d did not end\n", rank);
      continue;
    }
    statuses[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  munmap(shared, sizeof(Board));
  return statuses;
}

bool all_well(const std::vector<int>& statuses) {
  for (int status : statuses) {
    if (status != 0) return false;
  }
  return true;
}
