#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>

#include "monitor/dry_run.h"
#include "tests/unit/catch.h"

using dshang::monitor::DryRunPlan;
using dshang::monitor::run_ranks;

namespace {

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/dry-run-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Directory() { CHECK(system(("rm -r " + path_).c_str()) == 0); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

DryRunPlan shell(const std::string& script) { return {{}, {"/bin/sh", "-c", script}, true}; }

}  // namespace

TEST_CASE("every rank has its place in the job") {
  Directory directory;
  const std::string out = directory.file("$RANK");
  CHECK(run_ranks(
            shell("echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT > " + out),
            3) == 0);
  std::set<std::string> ports;
  for (const char* rank : {"0", "1", "2"}) {
    const std::string said = content(directory.file(rank));
    const std::string place = std::string(rank) + " " + rank + " 3 3 127.0.0.1 ";
    REQUIRE(said.substr(0, place.size()) == place);
    ports.insert(said.substr(place.size()));
  }
  CHECK(ports.size() == 1);
}

TEST_CASE("the status is that of the first rank that fails") {
  CHECK(run_ranks(shell("[ $RANK = 1 ] || exit 0; exit 7"), 3) == 7);
  CHECK(run_ranks(shell("[ $RANK = 0 ] && { sleep 0.4; exit 3; }; [ $RANK = 1 ] && exit 5; exit 0"), 3) == 5);
  CHECK(run_ranks(shell("[ $RANK = 1 ] && kill -9 $$; exit 0"), 2) == 128 + SIGKILL);
  CHECK(run_ranks({{}, {"/no/such/program"}, true}, 2) == 127);
}

TEST_CASE("signals are passed on") {
  Directory directory;
  const std::string ready = directory.file("ready");
  const std::string got = directory.file("got");
  const pid_t runner = fork();
  if (runner == 0) {
    // The shell handles a trap between two commands only, so it must not sleep long.
    _exit(run_ranks(shell("trap 'echo $RANK >> " + got + "; exit 9' TERM; echo >> " + ready +
                          "; while :; do sleep 0.05; done"),
                    2));
  }
  while (content(ready).size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(runner, SIGTERM);
  int status = 0;
  waitpid(runner, &status, 0);
  CHECK(WEXITSTATUS(status) == 9);
  CHECK(content(got).size() == 4);
}
