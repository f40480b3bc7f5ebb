// The kernel's OOM killer, as far as its counters tell: on trees of files that look like /proc and
// /sys/fs/cgroup.
#include "monitor/host_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "monitor/clock.h"

using namespace dshang;
using namespace dshang::monitor;

namespace {

namespace fs = std::filesystem;

struct Tree {
  fs::path root;
  Tree() {
    char name[] = "/tmp/dshang-host-memory-XXXXXX";
    root = mkdtemp(name);
  }
  ~Tree() { fs::remove_all(root); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  std::string proc() const { return (root / "proc").string(); }
  std::string mounted() const { return (root / "cgroup").string(); }
};

job::Death killed() {
  job::Death death;
  death.known = job::EndingKnown::kStatus;
  death.by_signal = true;
  death.code = 9;
  return death;
}

const char* kEvents = "low 0\nhigh 0\nmax 12\noom 1\noom_kill ";

}  // namespace

TEST_CASE("a rank that was killed while its control group lost a process was ended by the OOM killer") {
  Tree tree;
  tree.write("proc/42/cgroup", "0::/user/job\n");
  tree.write("proc/meminfo", "MemTotal:       1000000 kB\nMemFree: 1 kB\n");
  tree.write("cgroup/user/job/memory.events", kEvents + std::string("3\n"));
  tree.write("cgroup/user/job/memory.max", "512000000\n");
  HostMemory memory(42, tree.proc(), tree.mounted());
  job::Death death = killed();
  memory.explain(death);
  CHECK(death.oom_kills == 0);  // the three were before this job

  tree.write("cgroup/user/job/memory.events", kEvents + std::string("4\n"));
  memory.explain(death);
  CHECK(death.oom_kills == 1);
  CHECK(death.memory_limit == 512000000);
  CHECK(death.limit_is_of_group);

  job::Death unknown;
  memory.explain(unknown);
  CHECK(unknown.oom_kills == 1);
  job::Death failed = killed();
  failed.by_signal = false, failed.code = 1;
  memory.explain(failed);
  CHECK(failed.oom_kills == 0);
}

TEST_CASE("an old kill explains no new death") {
  Tree tree;
  tree.write("proc/42/cgroup", "0::/\n");
  tree.write("cgroup/memory.events", kEvents + std::string("0\n"));
  HostMemory memory(42, tree.proc(), tree.mounted());
  std::uint64_t now = now_ns();
  tree.write("cgroup/memory.events", kEvents + std::string("1\n"));
  for (int second = 2; second <= 16; second += 2) memory.look(now + second * kSecond);
  job::Death death = killed();
  memory.explain(death);
  CHECK(death.oom_kills == 0);
}

TEST_CASE("the folder of the memory controller is found in both versions, and from inside a container") {
  Tree tree;
  tree.write("cgroup/memory/slurm/job_7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  tree.write("cgroup/memory/memory.oom_control", "oom_kill 5\n");
  CHECK(memory_group_of("5:cpu:/x\n4:memory:/slurm/job_7/step_0\n0::/\n", tree.mounted()) ==
        tree.mounted() + "/memory/slurm/job_7");
  CHECK(memory_group_of("4:memory:/docker/0123\n", tree.mounted()) == tree.mounted() + "/memory");
  CHECK(memory_group_of("0::/none\n", tree.mounted()).empty());
  CHECK(memory_group_of("", tree.mounted()).empty());
  CHECK(oom_kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n") == 2u);
  CHECK_FALSE(oom_kills_in("oom_kill_disable 0\n"));
}

TEST_CASE("without a control group the machine's counter and memory stand for it") {
  Tree tree;
  tree.write("proc/42/cgroup", "");
  tree.write("proc/vmstat", "nr_free_pages 1\noom_kill 8\n");
  tree.write("proc/meminfo", "MemTotal:       1000 kB\n");
  HostMemory memory(42, tree.proc(), tree.mounted());
  tree.write("proc/vmstat", "nr_free_pages 1\noom_kill 9\n");
  job::Death death = killed();
  memory.explain(death);
  CHECK(death.oom_kills == 1);
  CHECK(death.memory_limit == 1024000);
  CHECK_FALSE(death.limit_is_of_group);
}

TEST_CASE("nothing readable is nothing known") {
  HostMemory memory(42, "/nowhere", "/nowhere");
  job::Death death = killed();
  memory.look(now_ns());
  memory.explain(death);
  CHECK(death.oom_kills == 0);
  CHECK_FALSE(read_resident("/nowhere"));
  CHECK(read_resident("/proc/" + std::to_string(getpid())).value_or(0) > 0);
}
