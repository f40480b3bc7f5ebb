#include <string>
#include <thread>

#include "api.h"
#include "catch.h"
#include "child.h"
#include "gate.h"

using namespace simgpu;

// Stands in front of the library's function of this name, as one of a library preloaded before it would.
SIMGPU_API int cuDeviceGetPCIBusId(char*, int, int) { return 4711; }

TEST_CASE("a thread has no context until it uses the runtime or sets one") {
  REQUIRE(cudaSetDevice(0) == kSuccess);
  Handle main_context = nullptr;
  REQUIRE(cuCtxGetCurrent(&main_context) == kSuccess);
  REQUIRE(main_context != nullptr);
  TestEvent event;
  std::thread([&] {
    Handle context = &context;
    CHECK(cuCtxGetCurrent(&context) == kSuccess);
    CHECK(context == nullptr);
    CHECK(cuEventQuery(event) == kInvalidContext);
    Handle created = nullptr;
    CHECK(cuEventCreate(&created, 2) == kInvalidContext);
    REQUIRE(cuCtxSetCurrent(main_context) == kSuccess);
    CHECK(cuEventQuery(event) == kSuccess);
    int device = -1;
    CHECK(cudaGetDevice(&device) == kSuccess);
    CHECK(device == 0);
  }).join();
}

TEST_CASE("selecting a device makes its context current") {
  REQUIRE(cudaSetDevice(1) == kSuccess);
  Handle current = nullptr;
  Handle primary = nullptr;
  REQUIRE(cuCtxGetCurrent(&current) == kSuccess);
  REQUIRE(cuDevicePrimaryCtxRetain(&primary, 1) == kSuccess);
  CHECK(current == primary);
  TestStream stream;
  Handle of_stream = nullptr;
  REQUIRE(cuStreamGetCtx(stream, &of_stream) == kSuccess);
  CHECK(of_stream == primary);
  REQUIRE(cudaSetDevice(0) == kSuccess);
}

TEST_CASE("a device nobody used has no active context") {
  CHECK(run_test_in_child("[.context]", {}).status == 0);
}

TEST_CASE("context", "[.context]") {
  unsigned flags = 0;
  int active = -1;
  CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active) == kNotInitialized);
  REQUIRE(cuInit(0) == kSuccess);
  REQUIRE(cuDevicePrimaryCtxGetState(3, &flags, &active) == kSuccess);
  CHECK(active == 0);
  REQUIRE(cudaSetDevice(3) == kSuccess);
  REQUIRE(cuDevicePrimaryCtxGetState(3, &flags, &active) == kSuccess);
  CHECK(active == 1);
}

TEST_CASE("the driver's functions are found by name, in their newest version") {
  int status = -1;
  void* by_runtime = nullptr;
  void* by_driver = nullptr;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuMemGetInfo", &by_runtime, 13000, 0, &status) == kSuccess);
  CHECK(status == 0);
  REQUIRE(cuGetProcAddress_v2("cuMemGetInfo", &by_driver, 13000, 0, &status) == kSuccess);
  CHECK(by_runtime == by_driver);
  CHECK(by_runtime == reinterpret_cast<void*>(&cuMemGetInfo_v2));
  for (const char* name : {"cuMemCreate", "cuMemMap", "cuMemUnmap", "cuEventQuery", "cuStreamIsCapturing",
                           "cuThreadExchangeStreamCaptureMode", "cuStreamGetCtx", "cuMemAlloc"}) {
    CAPTURE(name);
    REQUIRE(cudaGetDriverEntryPointByVersion(name, &by_runtime, 13000, 0, &status) == kSuccess);
    CHECK(by_runtime != nullptr);
  }
}

TEST_CASE("a driver function that does not exist is not found") {
  int status = -1;
  void* function = &status;
  CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 13000, 0, &status) == kSuccess);
  CHECK(function == nullptr);
  CHECK(status == 1);
  CHECK(cuGetProcAddress_v2("cuNoSuchThing", &function, 13000, 0, &status) == kNotFound);
}

TEST_CASE("a wrapper in front of the library is what a look-up by name gives") {
  int status = -1;
  void* function = nullptr;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuDeviceGetPCIBusId", &function, 13000, 0, &status) == kSuccess);
  CHECK(function == reinterpret_cast<void*>(&cuDeviceGetPCIBusId));
  REQUIRE(cuGetProcAddress_v2("cuDeviceGetPCIBusId", &function, 13000, 0, &status) == kSuccess);
  CHECK(function == reinterpret_cast<void*>(&cuDeviceGetPCIBusId));
}
