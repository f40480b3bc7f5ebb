// Identity, environment and the memory object, as far as they can be seen from inside one process.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch.h"
#include "core/rank/job_id.h"
#include "fakes.h"
#include "interpose/runtime/environment.h"
#include "interpose/runtime/flight_memory.h"

using namespace dshang;
using namespace dshang::interpose;

namespace {

struct Variable {
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = getenv(name)) before_ = strdup(before);
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() {
    before_ ? setenv(name_, before_, 1) : unsetenv(name_);
    free(before_);
  }
  const char* name_;
  char* before_ = nullptr;
};

}  // namespace

TEST_CASE("every part of a job's identity tells jobs apart") {
  rank::JobParts parts;
  parts.user = 1000;
  parts.elastic_run = "none";
  parts.master_address = "10.0.0.1";
  parts.master_port = "29500";
  parts.net_namespace = 4026531840;
  parts.pid_namespace = 4026531836;
  std::set<std::uint64_t> seen{rank::job_id(parts)};
  CHECK(rank::job_id(parts) == *seen.begin());
  auto differs = [&](auto change) {
    rank::JobParts other = parts;
    change(other);
    CHECK(seen.insert(rank::job_id(other)).second);
  };
  differs([](rank::JobParts& p) { p.user = 1001; });
  differs([](rank::JobParts& p) { p.elastic_run = "other"; });
  differs([](rank::JobParts& p) { p.elastic_run = nullptr; });
  differs([](rank::JobParts& p) { p.slurm_job = "7"; });
  differs([](rank::JobParts& p) { p.slurm_step = "7"; });
  differs([](rank::JobParts& p) { p.master_address = "10.0.0.12"; });
  differs([](rank::JobParts& p) { p.master_address = "10.0.0.12950", p.master_port = "0"; });
  differs([](rank::JobParts& p) { p.master_port = "29501"; });
  differs([](rank::JobParts& p) { p.directory = "out"; });
  differs([](rank::JobParts& p) { p.net_namespace = 1; });
  differs([](rank::JobParts& p) { p.pid_namespace = 1; });
  rank::JobParts empty_directory = parts;
  empty_directory.directory = "";
  CHECK(rank::job_id(empty_directory) == rank::job_id(parts));
}

TEST_CASE("namespaces are read") {
  CHECK(rank::namespace_inode("net") > 0);
  CHECK(rank::namespace_inode("no such namespace") == 0);
}

TEST_CASE("the rank is RANK, else the launcher's") {
  Variable rank("RANK", "5"), mpi("OMPI_COMM_WORLD_RANK", "6"), slurm("SLURM_PROCID", "7"), local("LOCAL_RANK", "1"),
      world("WORLD_SIZE", "8"), restart("TORCHELASTIC_RESTART_COUNT", "2");
  flight::Identity identity = identity_of_this_process();
  CHECK(identity.rank == 5);
  CHECK(identity.local_rank == 1);
  CHECK(identity.world_size == 8);
  CHECK(identity.restart_count == 2);
  CHECK(identity.job == dshang::rank::job_id(dshang::rank::job_parts_of_this_process()));
  Variable not_a_number("RANK", "5x");
  CHECK(identity_of_this_process().rank == 6);
  Variable no_mpi("OMPI_COMM_WORLD_RANK", nullptr);
  CHECK(identity_of_this_process().rank == 7);
  Variable no_slurm("SLURM_PROCID", "99999999999");
  CHECK(identity_of_this_process().rank == -1);
}

TEST_CASE("a monitor gets the environment without the preload") {
  Variable preload("LD_PRELOAD", ""), other("LD_PRELOADED", "x"), ours("DSHANG_DIR", "out");
  Environment environment;
  REQUIRE(environment.copy_now());
  CHECK(environment.find("LD_PRELOAD") == nullptr);
  CHECK(std::string(environment.find("LD_PRELOADED")) == "x");
  CHECK(std::string(environment.find("DSHANG_DIR")) == "out");
  CHECK(environment.find("DSHANG") == nullptr);
}

TEST_CASE("facts of the environment are those that matter, and no secrets") {
  Variable ours("DSHANG_STALL_AFTER", "5"), nccl("NCCL_DEBUG", "INFO"), secret("NCCL_AUTH_TOKEN", "hunter2"),
      foreign("HOME_OF_X", "y"), minutes("DEEPSPEED_TIMEOUT", "10");
  fakes::Recorder recorder;
  Environment environment;
  REQUIRE(environment.copy_now());
  environment.record(recorder.writer());
  std::set<std::string> keys;
  const flight::SectionInfo& facts = recorder.header().sections[static_cast<unsigned>(flight::Section::kFacts)];
  const flight::SectionInfo& strings = recorder.header().sections[static_cast<unsigned>(flight::Section::kStrings)];
  const flight::SectionInfo& arena = recorder.header().sections[static_cast<unsigned>(flight::Section::kArena)];
  const char* base = reinterpret_cast<const char*>(&recorder.header());
  for (std::uint64_t n = 0; n < recorder.header().fact_head.load(); ++n) {
    const auto& fact = reinterpret_cast<const flight::Fact*>(base + facts.offset)[n];
    const auto& entry = reinterpret_cast<const flight::StringEntry*>(base + strings.offset)[fact.key - 1];
    keys.insert(std::string(base + arena.offset + entry.offset, entry.length_plus_one.load() - 1));
  }
  CHECK(keys.count("env.DSHANG_STALL_AFTER"));
  CHECK(keys.count("env.NCCL_DEBUG"));
  CHECK(keys.count("env.DEEPSPEED_TIMEOUT"));
  CHECK_FALSE(keys.count("env.NCCL_AUTH_TOKEN"));
  CHECK_FALSE(keys.count("env.HOME_OF_X"));
}

TEST_CASE("flight memory is reserved, sealed, zero, close-on-exec, out of the way, and not a child's") {
  FlightMemory memory = make_flight_memory(1 << 20);
  REQUIRE(memory.base);
  CHECK(memory.sealed);
  CHECK(memory.fd > 500);
  CHECK((fcntl(memory.fd, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(fcntl(memory.fd, F_GET_SEALS) >= (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
  CHECK(ftruncate(memory.fd, 1 << 21) != 0);
  CHECK(static_cast<char*>(memory.base)[(1 << 20) - 1] == 0);
  touch_flight_memory(memory);
  CHECK(still_open(memory));
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    *static_cast<volatile char*>(memory.base) = 1;
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(*static_cast<char*>(memory.base) == 0);
  close(memory.fd);
  CHECK_FALSE(still_open(memory));
  int reused = open("/dev/null", O_RDONLY);
  REQUIRE(dup2(reused, memory.fd) == memory.fd);
  CHECK_FALSE(still_open(memory));
  close(memory.fd);
  close(reused);
}

TEST_CASE("a limit on file sizes is respected, not run into") {
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    FlightMemory memory = make_flight_memory(1 << 20);
    _exit(!memory.base && memory.why ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
