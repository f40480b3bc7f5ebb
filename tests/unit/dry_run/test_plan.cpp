#include <cstdlib>
#include <map>

#include "monitor/dry_run.h"
#include "tests/unit/catch.h"

using dshang::monitor::DryRunOptions;
using dshang::monitor::DryRunPlan;
using dshang::monitor::plan_dry_run;

namespace {

using Words = std::vector<std::string>;

DryRunPlan plan(const Words& command, const std::string& numerics = "int", const std::string& gpu = "") {
  DryRunOptions options{4, gpu, numerics, command};
  std::string error;
  const auto made = plan_dry_run(options, {"/opt/lib", "/opt/lib/simgpu_python"}, &error);
  INFO(error);
  REQUIRE(made);
  return *made;
}

std::string refusal(const DryRunOptions& options, const std::string& libraries = "/opt/lib") {
  std::string error;
  CHECK(!plan_dry_run(options, {libraries, libraries + "/simgpu_python"}, &error));
  CHECK(error.find('\n') == std::string::npos);
  return error;
}

std::map<std::string, std::string> environment(const DryRunPlan& made) {
  return {made.environment.begin(), made.environment.end()};
}

}  // namespace

TEST_CASE("launchers get the number of ranks unless they have one") {
  CHECK(plan({"torchrun", "x.py"}).command == Words{"torchrun", "--nproc_per_node=4", "x.py"});
  CHECK(plan({"torchrun", "--nproc-per-node", "2", "x.py"}).command ==
        Words{"torchrun", "--nproc-per-node", "2", "x.py"});
  CHECK(plan({"python3", "-m", "torch.distributed.run", "x.py"}).command ==
        Words{"python3", "-m", "torch.distributed.run", "--nproc_per_node=4", "x.py"});
  CHECK(plan({"/usr/bin/deepspeed", "x.py", "--lr", "1"}).command ==
        Words{"/usr/bin/deepspeed", "--num_gpus", "4", "x.py", "--lr", "1"});
  CHECK(plan({"deepspeed", "--num_gpus=2", "x.py"}).command == Words{"deepspeed", "--num_gpus=2", "x.py"});
  CHECK(plan({"deepspeed", "--include", "localhost:0,1", "x.py"}).command.size() == 4);
  CHECK_FALSE(plan({"torchrun", "x.py"}).once_a_rank);
}

TEST_CASE("a Python program is started once a rank, other programs once") {
  CHECK(plan({"python", "x.py"}).once_a_rank);
  CHECK(plan({"/usr/bin/python3.12", "-u", "-m", "trainer"}).once_a_rank);
  CHECK_FALSE(plan({"bash", "run.sh"}).once_a_rank);
  CHECK_FALSE(plan({"mpirun", "-n", "4", "python", "x.py"}).once_a_rank);
}

TEST_CASE("a launcher is found behind programs that start it") {
  CHECK(plan({"env", "A=1", "torchrun", "x.py"}).command ==
        Words{"env", "A=1", "torchrun", "--nproc_per_node=4", "x.py"});
  CHECK(plan({"uv", "run", "deepspeed", "x.py"}).command ==
        Words{"uv", "run", "deepspeed", "--num_gpus", "4", "x.py"});
  CHECK(plan({"nice", "-n", "5", "python", "-m", "torch.distributed.run", "x.py"}).command[6] ==
        "--nproc_per_node=4");
  CHECK_FALSE(plan({"env", "A=1", "torchrun", "x.py"}).once_a_rank);
  CHECK(plan({"timeout", "60", "python", "x.py"}).once_a_rank);
  CHECK_FALSE(plan({"uv", "run", "--with", "python-dateutil", "torchrun", "x.py"}).once_a_rank);
  CHECK(plan({"python3.13t", "x.py"}).once_a_rank);
  CHECK_FALSE(plan({"env", "A=1", "bash", "run.sh"}).once_a_rank);
  CHECK_FALSE(plan({"bash", "run.sh", "torchrun"}).once_a_rank);
}

TEST_CASE("accelerate takes all devices by itself, and is started once") {
  for (const Words& command :
       {Words{"accelerate", "launch", "x.py"}, Words{"python", "-m", "accelerate.commands.launch", "x.py"},
        Words{"uv", "run", "accelerate", "launch", "x.py"}}) {
    CHECK(plan(command).command == command);
    CHECK_FALSE(plan(command).once_a_rank);
  }
}

TEST_CASE("the libraries are preloaded in front of the user's") {
  unsetenv("LD_PRELOAD");
  setenv("PYTHONPATH", "/home/me", 1);
  const auto made = environment(plan({"torchrun", "x.py"}));
  CHECK(made.at("LD_PRELOAD") == "/opt/lib/libdshang.so /opt/lib/libsimcuda.so");
  CHECK(made.at("PYTHONPATH") == "/opt/lib/simgpu_python:/home/me");
  CHECK(made.at("SIMGPU_DEVICES") == "4");
  CHECK(made.at("TRITON_LIBCUDA_PATH") == "/opt/lib");
  setenv("LD_PRELOAD", "/home/me/tool.so", 1);
  CHECK(environment(plan({"torchrun", "x.py"})).at("LD_PRELOAD") ==
        "/opt/lib/libdshang.so /opt/lib/libsimcuda.so /home/me/tool.so");
  unsetenv("LD_PRELOAD");
}

TEST_CASE("numerics and the device's memory") {
  CHECK(environment(plan({"torchrun", "x.py"})).at("SIMNCCL_DATA_CAP") == "1M");
  CHECK(environment(plan({"torchrun", "x.py"}, "small")).at("SIMNCCL_DATA_CAP") == "0");
  setenv("SIMNCCL_DATA_CAP", "4K", 1);
  CHECK(environment(plan({"torchrun", "x.py"})).count("SIMNCCL_DATA_CAP") == 0);
  unsetenv("SIMNCCL_DATA_CAP");
  CHECK(environment(plan({"torchrun", "x.py"}, "off", "a100-40g")).at("SIMGPU_VRAM_BYTES") == "42949672960");
  CHECK(environment(plan({"torchrun", "x.py"}, "off", "a100-40g")).at("DSHANG_DRY_RUN") == "a100-40g");
  CHECK(environment(plan({"torchrun", "x.py"}, "off")).at("SIMGPU_NUM") == "off");
  setenv("SIMGPU_VRAM_BYTES", "1:8G", 1);
  CHECK(environment(plan({"torchrun", "x.py"}, "off", "a100-40g")).at("SIMGPU_VRAM_BYTES") ==
        "42949672960,1:8G");
  unsetenv("SIMGPU_VRAM_BYTES");
}

TEST_CASE("what cannot be run is said in one line") {
  CHECK(refusal({0, "", "int", {"python", "x.py"}}).find("1 to 64") != std::string::npos);
  CHECK(refusal({65, "", "int", {"python", "x.py"}}).find("1 to 64") != std::string::npos);
  CHECK(refusal({2, "gtx", "int", {"python", "x.py"}}).find("h100-80g") != std::string::npos);
  CHECK(refusal({2, "", "exact", {"python", "x.py"}}).find("off, int or small") != std::string::npos);
  CHECK(refusal({2, "", "int", {}}).find("no command") != std::string::npos);
  CHECK(refusal({2, "", "int", {"python"}}, "/my libs").find("space") != std::string::npos);
}
