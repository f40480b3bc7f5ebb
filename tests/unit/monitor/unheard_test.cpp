#include "monitor/unheard.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/catch.h"

using namespace dshang::monitor;

namespace {

std::string environment(std::initializer_list<const char*> lines) {
  std::string text;
  for (const char* line : lines) text += std::string(line) + '\0';
  return text;
}

constexpr const char* kTorch = "7f00-7f01 r-xp 00000000 00:01 5 /lib/libtorch_cuda.so\n";
constexpr const char* kPreloaded = "7f00-7f01 r-xp 00000000 00:01 6 /opt/libdshang.so\n";

RankProcess process(std::int32_t pid, std::int32_t rank, const std::string& maps) {
  RankProcess made = of_maps(maps);
  made.pid = pid;
  made.rank = rank;
  return made;
}

}  // namespace

TEST_CASE("a rank's environment is known by the variables that tell jobs apart") {
  const std::map<std::string, std::string> own = {{"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}};
  CHECK(rank_of_environment(environment({"MASTER_ADDR=h", "RANK=3", "MASTER_PORT=1"}), own) == 3);
  CHECK(rank_of_environment(environment({"MASTER_ADDR=h", "SLURM_PROCID=4", "MASTER_PORT=1"}), own) == 4);
  CHECK(rank_of_environment(environment({"MASTER_ADDR=h", "RANK=3", "MASTER_PORT=2"}), own) == -1);
  CHECK(rank_of_environment(environment({"MASTER_ADDR=h", "LOCAL_RANK=3", "MASTER_PORT=1"}), own) == -1);
  CHECK(rank_of_environment(environment({"MASTER_ADDR=h", "RANK=x", "MASTER_PORT=1"}), own) == -1);
  CHECK(rank_of_environment(environment({"RANK=3"}), {}) == -1);
  CHECK(rank_of_environment("", own) == -1);
}

TEST_CASE("only a rank that works without the library is said to lack it") {
  auto lacking = [](std::vector<RankProcess> processes) { return without_library(processes).size(); };
  CHECK(lacking({process(1, 0, kTorch)}) == 1);
  CHECK(lacking({process(1, 0, "7f00 /lib/libc.so.6\n")}) == 0);  // a wrapper may set LD_PRELOAD yet
  CHECK(lacking({process(1, 0, std::string(kTorch) + kPreloaded)}) == 0);
  CHECK(lacking({process(1, 0, kTorch), process(2, 0, kPreloaded)}) == 0);  // a child of a rank
  CHECK(lacking({process(1, 0, kTorch), process(2, 1, kPreloaded)}) == 1);
  CHECK(with_library({process(1, 0, kTorch), process(2, 1, kPreloaded)}) == Ranks{1});
}

TEST_CASE("the line names ranks, a process and its LD_PRELOAD") {
  RankProcess one = process(4711, 1, kTorch);
  std::string text = text_of({{1, one}, {2, one}});
  CHECK(text.find("ranks 1, 2 did not load libdshang.so (process 4711: no LD_PRELOAD)") == 0);
  one.preload = "/gone/libdshang.so";
  CHECK(text_of({{1, one}}).find("rank 1 did not load libdshang.so (process 4711: LD_PRELOAD=/gone/libdshang.so)") == 0);
  CHECK(text_of_unheard({8, 9, 10, 11}, "/d").find("ranks 8-11 were not heard from") == 0);
}

TEST_CASE("ranks of other nodes are read from their newest attempt") {
  char name[] = "/tmp/unheard-test-XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder / path).parent_path());
    std::ofstream(folder / path) << text;
  };
  write("node-1/attempt-1/flight/ranks", "1\n");
  write("node-1/attempt-2/flight/ranks", "2\n3\n");
  write("node-2/attempt-1/flight/ranks", "4\nx\n");
  write("attempt-1/flight/ranks", "9\n");
  CHECK(ranks_of_other_nodes(folder.string()) == Ranks{2, 3, 4});
  CHECK(ranks_of_other_nodes((folder / "missing").string()).empty());
  std::filesystem::remove_all(folder);
}
