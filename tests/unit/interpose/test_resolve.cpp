// The wrappers as a preload of real programs (programs/), with the fake libraries in every constellation.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "catch.h"

namespace {

struct Ended {
  int status;
  std::string output;  // stdout and stderr
};

Ended run(const std::string& program, const std::string& environment = "", const std::string& more_preload = "") {
  std::string command = "env LD_PRELOAD='" TEST_PRELOAD_FIRST TEST_PRELOAD " " + more_preload + "' FAKES='" TEST_FAKES "' LD_LIBRARY_PATH='" TEST_FAKES
                        "' " + environment + " '" TEST_PROGRAMS "/" + program + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string output;
  char piece[512];
  while (std::fgets(piece, sizeof piece, pipe)) output += piece;
  int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), output};
}

void check_scenario(const char* name, const std::string& environment = "", const std::string& more_preload = "") {
  Ended ended = run("interpose_host' " + std::string(name), environment, more_preload);
  INFO(ended.output);
  CHECK(ended.status == 0);
  CHECK(ended.output.empty());
}

}  // namespace

TEST_CASE("real functions: caller and NCCL opened RTLD_LOCAL") { check_scenario("local"); }
TEST_CASE("real functions: NCCL static inside the caller") { check_scenario("static"); }
TEST_CASE("real functions: two NCCLs in a process") { check_scenario("two"); }
TEST_CASE("real functions: wrapper found by name, as by ctypes.CDLL(None)") { check_scenario("by_name"); }
TEST_CASE("real functions: NCCL in a library of another name") { check_scenario("odd_name"); }
TEST_CASE("real functions: references with a version") { check_scenario("versioned"); }
TEST_CASE("real functions: another preload in between") {
  check_scenario("other_preload", "", TEST_FAKES "/libother_preload.so");
}
TEST_CASE("real functions: a linked program") {
  Ended ended = run("interpose_linked'");
  INFO(ended.output);
  CHECK(ended.status == 0);
}

TEST_CASE("real functions: none there") {
  Ended ended = run("interpose_host' missing", "LD_LIBRARY_PATH=");
  CHECK(ended.status == 0);
  auto count = [&](const std::string& text) {
    int found = 0;
    for (std::size_t at = 0; (at = ended.output.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  INFO(ended.output);
  CHECK(count("dshang: ncclAllReduce is in no loaded library") == 1);
  CHECK(count("dshang: ncclCommInitRank is in no loaded library") == 1);
  check_scenario("missing", "LD_LIBRARY_PATH= DSHANG_NCCL_LIB='" TEST_FAKES "/libnccl.so.2'");
}

TEST_CASE("the ends of a process are noted, and their status is the program's") {
  struct {
    const char* scenario;
    int status;
    const char* noted;
  } ends[] = {{"exits", 23, "1 23"}, {"exits_by_standard_name", 24, "1 24"}, {"aborts", 134, "3 6"}};
  for (auto& end : ends) {
    std::string file = std::string(TEST_FAKES) + "/ending." + end.scenario;
    std::remove(file.c_str());
    Ended ended = run("interpose_host' " + std::string(end.scenario), "DOUBLE_ENDING='" + file + "'");
    CHECK((ended.status == end.status || ended.status == -6));
    std::string noted;
    std::getline(std::ifstream(file), noted);
    CHECK(noted == end.noted);
  }
}
