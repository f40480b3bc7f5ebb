#include "launch/carried.h"
#include "launch/words.h"
#include "tests/unit/launch/made.h"

using namespace dshang::launch;

TEST_CASE("the library is in front of what is preloaded already, once") {
  CHECK(in_front(kLibrary, "") == kLibrary);
  CHECK(in_front(kLibrary, "/a.so /b.so") == "/opt/dshang/libdshang.so:/a.so:/b.so");
  CHECK(in_front(kLibrary, "/a.so:/opt/dshang/libdshang.so::/b.so") == "/opt/dshang/libdshang.so:/a.so:/b.so");
  CHECK(in_front(kLibrary, "/old/libdshang.so") == kLibrary);  // two would record each call twice
  const std::string both = std::string(kLibrary) + ":/opt/dshang/libdshang_dlsym.so";
  CHECK(in_front(both, "/a.so /old/libdshang_dlsym.so:/old/libdshang.so") == both + ":/a.so");
}

TEST_CASE("launchers are found at the beginning and behind programs that hand their environment on") {
  CHECK(first_launcher({"deepspeed", "x.py"}).launcher == Launcher::kDeepSpeed);
  CHECK(first_launcher({"/usr/bin/srun", "-n", "2"}).launcher == Launcher::kSrun);
  CHECK(first_launcher({"env", "A=B", "timeout", "9", "torchrun", "x.py"}).at == 4);
  Found module = first_launcher({"python3", "-u", "-m", "torch.distributed.run", "x.py"});
  CHECK(module.launcher == Launcher::kTorchrun);
  CHECK(module.options == 4);
  CHECK(first_launcher({"python3", "x.py", "-m", "deepspeed.launcher.runner"}).launcher == Launcher::kPython);
  CHECK(first_launcher({"bash", "run.sh", "deepspeed"}).launcher == Launcher::kNone);
  CHECK(first_launcher({}).launcher == Launcher::kNone);
}

TEST_CASE("options end where the program begins") {
  Words words = {"srun", "-n", "2", "-N2", "--label", "--mem=3", "--job-name", "x", "python", "--export=no"};
  CHECK(end_of_options(words, 1, {"--label"}) == 8);
  CHECK_FALSE(find_option(words, 1, 8, {"--export"}).there);
  CHECK(value_of(words, find_option(words, 1, 8, {"--job-name"})) == "x");
  CHECK(end_of_options({"x", "--", "y"}, 1, {}) == 2);
  CHECK(end_of_options({"x", "--last"}, 1, {}) == 2);
}

TEST_CASE("a program that starts ranks of its own node gets the environment and is left as it is") {
  Folder folder;
  for (const Words& command : std::vector<Words>{{"torchrun", "--nproc_per_node=2", "x.py", "srun", "--export=A"},
                                                 {"accelerate", "launch", "x.py"},
                                                 {"python", "x.py", "-x", "LD_PRELOAD=/a.so"},
                                                 {"deepspeed", "--num_gpus", "2", "x.py", "mpirun"}}) {
    Plan plan = planned(place_in(folder, {{"LD_PRELOAD", "/a.so"}}), command);
    CHECK(plan.command == command);
    CHECK(plan.environment == Variables{{"LD_PRELOAD", "/opt/dshang/libdshang.so:/a.so"}});
    CHECK_FALSE(plan.env_file);
    CHECK(plan.remarks.empty());
  }
}

TEST_CASE("what is no launcher gets the environment, and a line says what that means") {
  Folder folder;
  Plan plan = planned(place_in(folder), {"bash", "run.sh"});
  CHECK(plan.environment == Variables{{"LD_PRELOAD", kLibrary}});
  REQUIRE(plan.remarks.size() == 1);
  CHECK(plan.remarks[0].find("bash is no launcher that is known here") == 0);
}

TEST_CASE("input that cannot be used is refused in a line") {
  Folder folder;
  CHECK(refused(place_in(folder), {}).find("no command") == 0);
  CHECK(refused(place_in(folder), {""}).find("no command") == 0);
  Place place = place_in(folder);
  place.library = "/my libs/libdshang.so";
  CHECK(refused(place, {"torchrun", "x.py"}).find("cannot be preloaded") != std::string::npos);
}
