#include <cstring>
#include <string>
#include <thread>

#include "api.h"
#include "catch.h"
#include "child.h"
#include "gate.h"

using namespace simgpu;

TEST_CASE("the last error is kept until it is read, and success does not clear it") {
  cudaGetLastError();
  CHECK(cudaSetDevice(1000) == kInvalidDevice);
  int device = -1;
  CHECK(cudaGetDevice(&device) == kSuccess);
  CHECK(cudaPeekAtLastError() == kInvalidDevice);
  CHECK(cudaPeekAtLastError() == kInvalidDevice);
  CHECK(cudaGetLastError() == kInvalidDevice);
  CHECK(cudaGetLastError() == kSuccess);
}

TEST_CASE("a later error replaces an earlier one") {
  CHECK(cudaSetDevice(1000) == kInvalidDevice);
  CHECK(cudaStreamQuery(reinterpret_cast<Handle>(0x1234)) == kInvalidHandle);
  CHECK(cudaGetLastError() == kInvalidHandle);
}

TEST_CASE("each thread has a last error of its own") {
  cudaGetLastError();
  std::thread([] { CHECK(cudaSetDevice(1000) == kInvalidDevice); }).join();
  CHECK(cudaGetLastError() == kSuccess);
}

TEST_CASE("calls of the driver leave the runtime's last error alone") {
  cudaGetLastError();
  CHECK(cuEventQuery(reinterpret_cast<Handle>(0x1234)) != kSuccess);
  CHECK(cudaGetLastError() == kSuccess);
}

TEST_CASE("errors have names and texts") {
  CHECK(std::string(cudaGetErrorName(2)) == "cudaErrorMemoryAllocation");
  CHECK(std::string(cudaGetErrorString(2)) == "out of memory");
  CHECK(std::string(cudaGetErrorString(12345)) == "unrecognized error code");
}

TEST_CASE("what is not supported says so once, and returns it") {
  const ChildResult result = run_test_in_child("[.unsupported]", {});
  CHECK(result.status == 0);
  const std::string line = "simgpu: cudaIpcGetMemHandle is not supported\n";
  const size_t first = result.output.find(line);
  CHECK(first != std::string::npos);
  CHECK(result.output.find(line, first + 1) == std::string::npos);
  CHECK(run_test_in_child("[.unsupported]", {"SIMGPU_QUIET=1"}).output.find("not supported") ==
        std::string::npos);
}

TEST_CASE("unsupported", "[.unsupported]") {
  char handle[64];
  CHECK(cudaIpcGetMemHandle(handle, nullptr) == kNotSupported);
  CHECK(cudaIpcGetMemHandle(handle, nullptr) == kNotSupported);
  CHECK(cudaGetLastError() == kNotSupported);
}

TEST_CASE("a fault of the device stays") {
  const ChildResult result = run_test_in_child("[.fault]", {"SIMGPU_FAULT_LAUNCH=3"});
  INFO(result.output);
  CHECK(result.status == 0);
}

TEST_CASE("fault", "[.fault]") {
  TestStream stream;
  Gate gate;
  gate.close(stream);
  const auto launch = [&stream] {
    return cudaLaunchKernel(nullptr, {1, 1, 1}, {32, 1, 1}, nullptr, 0, stream);
  };
  for (int i = 0; i < 4; ++i) CHECK(launch() == kSuccess);  // the fault is asynchronous
  gate.open();
  CHECK(cudaStreamSynchronize(stream) == kIllegalAddress);
  CHECK(cudaGetLastError() == kIllegalAddress);
  CHECK(cudaGetLastError() == kIllegalAddress);
  CHECK(launch() == kIllegalAddress);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 16) == kIllegalAddress);
  CHECK(cudaSetDevice(1) == kSuccess);           // another device is not concerned
  CHECK(cudaGetLastError() == kIllegalAddress);  // kept by the thread
  CHECK(cudaGetLastError() == kSuccess);
  CHECK(cudaMalloc(&memory, 16) == kSuccess);
}

TEST_CASE("a kernel is not launched on a stream of another device") {
  REQUIRE(cudaSetDevice(1) == kSuccess);
  TestStream other;
  REQUIRE(cudaSetDevice(0) == kSuccess);
  CHECK(cudaLaunchKernel(nullptr, {1, 1, 1}, {32, 1, 1}, nullptr, 0, other) == kInvalidHandle);
  CHECK(cudaGetLastError() == kInvalidHandle);
  CHECK(cudaLaunchKernel(nullptr, {1, 1, 1}, {32, 1, 1}, nullptr, 0, nullptr) == kSuccess);
}

TEST_CASE("a launch that cannot be is refused") {
  CHECK(cudaLaunchKernel(nullptr, {0, 1, 1}, {32, 1, 1}, nullptr, 0, nullptr) == 9);
  CHECK(cudaLaunchKernel(nullptr, {1, 1, 1}, {2048, 1, 1}, nullptr, 0, nullptr) == 9);
  cudaGetLastError();
}
