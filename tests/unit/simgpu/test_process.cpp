// What the library does to a process that has it preloaded.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "api.h"
#include "catch.h"
#include "child.h"
#include "gate.h"

using namespace simgpu;

namespace {

size_t thread_count() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    count += entry.exists() ? 1 : 0;
  return count;
}

// Runs `body` in a forked child; the child's exit status is what it returns.
template <class Body>
int in_fork(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("a program that does not use CUDA is left alone") {
  const ChildResult nothing = run_preloaded({"/bin/true"}, {"SIMGPU_DEVICES=nonsense"});
  CHECK(nothing.status == 0);
  CHECK(nothing.output.empty());
  const ChildResult maps = run_preloaded({"/bin/cat", "/proc/self/maps"}, {});
  CHECK(maps.status == 0);
  CHECK(maps.output.find("libsimcuda.so") != std::string::npos);
  CHECK(maps.output.find("libnvidia-ml") == std::string::npos);
#ifndef __SANITIZE_ADDRESS__
  CHECK(maps.output.find("libstdc++") == std::string::npos);
#endif
  const ChildResult threads = run_preloaded({"/bin/sh", "-c", "ls /proc/self/task | wc -l"}, {});
  CHECK(threads.output == "1\n");
}

TEST_CASE("NVML comes with the first use of CUDA") { CHECK(run_test_in_child("[.nvml]", {}).status == 0); }

TEST_CASE("nvml", "[.nvml]") {
  const auto loaded = [] { return dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr; };
  CHECK_FALSE(loaded());
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == kSuccess);
  REQUIRE(loaded());
  using Count = int (*)(unsigned*);
  const Count nvml_count =
      reinterpret_cast<Count>(dlsym(dlopen("libnvidia-ml.so.1", RTLD_NOW), "nvmlDeviceGetCount_v2"));
  unsigned devices = 0;
  REQUIRE(nvml_count != nullptr);
  CHECK(nvml_count(&devices) == 0);
  CHECK(devices == static_cast<unsigned>(count));
}

TEST_CASE("no thread runs while streams are idle from the start") {
  CHECK(run_test_in_child("[.threads]", {}).status == 0);
}

TEST_CASE("threads", "[.threads]") {
  TestStream stream;
  TestEvent event;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, stream) == kSuccess);
    REQUIRE(cudaEventRecord(event, stream) == kSuccess);
  }
  REQUIRE(cudaDeviceSynchronize() == kSuccess);
  CHECK(thread_count() == 1);
}

TEST_CASE("a child forked after CUDA was used lives, but cannot use it") {
  TestStream stream;
  Gate gate;
  gate.close(stream);
  const int status = in_fork([] {
    void* memory = nullptr;
    int count = 0;
    if (cudaMalloc(&memory, 16) != kNotInitialized) return 1;
    if (cudaGetDeviceCount(&count) != kNotInitialized) return 2;
    if (cuInit(0) != kNotInitialized) return 3;
    if (cudaGetLastError() != kNotInitialized) return 4;
    return 0;
  });
  CHECK(status == 0);
  gate.open();
  CHECK(cudaStreamSynchronize(stream) == kSuccess);
}

TEST_CASE("a child forked before CUDA was used may use it") {
  CHECK(run_test_in_child("[.early-fork]", {}).status == 0);
}

TEST_CASE("early fork", "[.early-fork]") {
  CHECK(in_fork([] {
          void* memory = nullptr;
          return cudaMalloc(&memory, 16) == kSuccess ? 0 : 1;
        }) == 0);
}

TEST_CASE("devices are what the settings say") {
  CHECK(run_test_in_child("[.devices]", {"SIMGPU_DEVICES=4", "CUDA_VISIBLE_DEVICES=3,1"}).status == 0);
  CHECK(run_test_in_child("[.no-devices]", {"CUDA_VISIBLE_DEVICES="}).status == 0);
  CHECK(run_test_in_child("[.no-devices]", {"SIMGPU_DEVICES=0"}).status == 0);
}

TEST_CASE("devices", "[.devices]") {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == kSuccess);
  CHECK(count == 2);
  char bus[16];
  REQUIRE(cudaDeviceGetPCIBusId(bus, sizeof bus, 0) == kSuccess);
  CHECK(std::string(bus) == "0000:04:00.0");
  CHECK(cudaSetDevice(2) == kInvalidDevice);
}

TEST_CASE("no devices", "[.no-devices]") {
  int count = -1;
  CHECK(cudaGetDeviceCount(&count) == kNoDevice);
  CHECK(count == 0);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 16) == kNoDevice);
}

TEST_CASE("a bad setting is named in one line, and the default is used") {
  const ChildResult result = run_test_in_child("[.default-count]", {"SIMGPU_DEVICES=many"});
  CHECK(result.status == 0);
  CHECK(result.output.find("simgpu: SIMGPU_DEVICES=many is not an integer from 0 to 64; 8 is used\n") !=
        std::string::npos);
}

TEST_CASE("default count", "[.default-count]") {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == kSuccess);
  CHECK(count == 8);
}
