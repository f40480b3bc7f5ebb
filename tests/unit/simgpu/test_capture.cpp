#include <thread>
#include <vector>

#include "api.h"
#include "catch.h"
#include "gate.h"

using namespace simgpu;

namespace {

void increase(void* number) { ++*static_cast<int*>(number); }

int status_of(Handle stream) {
  int status = -1;
  CHECK(cudaStreamIsCapturing(stream, &status) == kSuccess);
  return status;
}

size_t node_count(Handle graph) {
  size_t count = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count) == kSuccess);
  return count;
}

// Ends a capture that must have been invalidated.
void check_invalidated(Handle stream) {
  Handle graph = &graph;
  CHECK(cudaStreamEndCapture(stream, &graph) == kCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK(status_of(stream) == 0);
  cudaGetLastError();
}

}  // namespace

TEST_CASE("captured work runs at each replay, not before") {
  TestStream stream;
  int runs = 0;
  REQUIRE(cudaStreamBeginCapture(stream, kGlobalMode) == kSuccess);
  CHECK(status_of(stream) == 1);
  REQUIRE(cudaLaunchHostFunc(stream, increase, &runs) == kSuccess);
  REQUIRE(cudaLaunchHostFunc(stream, increase, &runs) == kSuccess);
  Handle graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == kSuccess);
  CHECK(runs == 0);
  CHECK(node_count(graph) == 2);
  Handle executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == kSuccess);
  REQUIRE(cudaGraphDestroy(graph) == kSuccess);
  for (int i = 0; i < 3; ++i) REQUIRE(cudaGraphLaunch(executable, stream) == kSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == kSuccess);
  CHECK(runs == 6);
  REQUIRE(cudaGraphExecDestroy(executable) == kSuccess);
}

TEST_CASE("another stream joins a capture by an event and must be joined again") {
  TestStream origin;
  TestStream side;
  TestEvent fork;
  TestEvent join;
  int runs = 0;
  REQUIRE(cudaStreamBeginCapture(origin, kGlobalMode) == kSuccess);
  REQUIRE(cudaEventRecord(fork, origin) == kSuccess);
  REQUIRE(cudaStreamWaitEvent(side, fork, 0) == kSuccess);
  CHECK(status_of(side) == 1);
  REQUIRE(cudaLaunchHostFunc(side, increase, &runs) == kSuccess);
  Handle graph = nullptr;
  SECTION("joined") {
    REQUIRE(cudaEventRecord(join, side) == kSuccess);
    REQUIRE(cudaStreamWaitEvent(origin, join, 0) == kSuccess);
    CHECK(cudaStreamEndCapture(origin, &graph) == kSuccess);
    CHECK(node_count(graph) == 1);
    cudaGraphDestroy(graph);
  }
  SECTION("not joined") { CHECK(cudaStreamEndCapture(origin, &graph) == kCaptureUnjoined); }
  CHECK(status_of(side) == 0);
  CHECK(runs == 0);
  cudaGetLastError();
}

TEST_CASE("the query of a foreign event invalidates a global capture") {
  TestStream stream;
  TestEvent foreign;
  REQUIRE(cudaStreamBeginCapture(stream, kGlobalMode) == kSuccess);
  SECTION("by another thread") {
    std::thread([&] { CHECK(cudaEventQuery(foreign) == kCaptureUnsupported); }).join();
  }
  SECTION("by the driver's function") {
    Handle context = nullptr;
    REQUIRE(cuCtxGetCurrent(&context) == kSuccess);
    std::thread([&] {
      REQUIRE(cuCtxSetCurrent(context) == kSuccess);
      CHECK(cuEventQuery(foreign) == kCaptureUnsupported);
    }).join();
  }
  SECTION("by an allocation") {
    void* memory = nullptr;
    std::thread([&] { CHECK(cudaMalloc(&memory, 16) == kCaptureUnsupported); }).join();
  }
  CHECK(status_of(stream) == 2);
  CHECK(cudaLaunchHostFunc(stream, increase, nullptr) == kCaptureInvalidated);
  check_invalidated(stream);
}

TEST_CASE("a thread in relaxed mode may query while others capture") {
  TestStream stream;
  TestEvent foreign;
  REQUIRE(cudaStreamBeginCapture(stream, kGlobalMode) == kSuccess);
  std::thread([&] {
    int mode = kRelaxedMode;
    REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == kSuccess);
    CHECK(mode == kGlobalMode);
    CHECK(cudaEventQuery(foreign) == kSuccess);
    REQUIRE(cuThreadExchangeStreamCaptureMode(&mode) == kSuccess);
    CHECK(mode == kRelaxedMode);
  }).join();
  CHECK(status_of(stream) == 1);
  Handle graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == kSuccess);
  cudaGraphDestroy(graph);
}

TEST_CASE("a thread-local capture concerns its own thread only") {
  TestStream stream;
  TestEvent foreign;
  REQUIRE(cudaStreamBeginCapture(stream, kThreadLocalMode) == kSuccess);
  std::thread([&] { CHECK(cudaEventQuery(foreign) == kSuccess); }).join();
  CHECK(status_of(stream) == 1);
  CHECK(cudaEventQuery(foreign) == kCaptureUnsupported);
  check_invalidated(stream);
}

TEST_CASE("a captured event can be neither queried nor waited for by the host") {
  TestStream stream;
  TestEvent event;
  REQUIRE(cudaStreamBeginCapture(stream, kRelaxedMode) == kSuccess);
  REQUIRE(cudaEventRecord(event, stream) == kSuccess);
  CHECK(cudaEventQuery(event) == kCapturedEvent);
  check_invalidated(stream);
}

TEST_CASE("a capturing stream cannot be synchronised") {
  TestStream stream;
  REQUIRE(cudaStreamBeginCapture(stream, kRelaxedMode) == kSuccess);
  CHECK(cudaStreamSynchronize(stream) == kCaptureUnsupported);
  check_invalidated(stream);
}

TEST_CASE("a capture does not depend on work outside") {
  TestStream stream;
  TestStream outside;
  TestEvent event;
  REQUIRE(cudaEventRecord(event, outside) == kSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, kGlobalMode) == kSuccess);
  CHECK(cudaStreamWaitEvent(stream, event, 0) == kCaptureIsolation);
  check_invalidated(stream);
}

TEST_CASE("two captures cannot be merged") {
  TestStream first;
  TestStream second;
  TestEvent event;
  REQUIRE(cudaStreamBeginCapture(first, kGlobalMode) == kSuccess);
  REQUIRE(cudaStreamBeginCapture(second, kGlobalMode) == kSuccess);
  REQUIRE(cudaEventRecord(event, first) == kSuccess);
  CHECK(cudaStreamWaitEvent(second, event, 0) == kCaptureMerge);
  check_invalidated(first);
  check_invalidated(second);
}

TEST_CASE("the legacy stream cannot be used while a blocking stream is captured") {
  TestStream blocking(0);
  REQUIRE(cudaStreamBeginCapture(blocking, kRelaxedMode) == kSuccess);
  int status = 0;
  CHECK(cudaStreamIsCapturing(nullptr, &status) == kCaptureImplicit);
  CHECK(status_of(blocking) == 1);  // asking does no harm
  CHECK(cudaLaunchHostFunc(nullptr, increase, nullptr) == kCaptureImplicit);
  check_invalidated(blocking);
}

TEST_CASE("the legacy stream itself cannot be captured") {
  CHECK(cudaStreamBeginCapture(nullptr, kGlobalMode) == kCaptureUnsupported);
  cudaGetLastError();
}

TEST_CASE("a capture ends where and by whom it was begun") {
  TestStream stream;
  TestStream side;
  TestEvent event;
  Handle graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == kIllegalState);
  REQUIRE(cudaStreamBeginCapture(stream, kGlobalMode) == kSuccess);
  CHECK(cudaStreamBeginCapture(stream, kGlobalMode) == kIllegalState);
  SECTION("by another thread") {
    std::thread([&] { CHECK(cudaStreamEndCapture(stream, &graph) == kCaptureWrongThread); }).join();
    CHECK(cudaStreamEndCapture(stream, &graph) == kSuccess);
    cudaGraphDestroy(graph);
  }
  SECTION("on another stream") {
    REQUIRE(cudaEventRecord(event, stream) == kSuccess);
    REQUIRE(cudaStreamWaitEvent(side, event, 0) == kSuccess);
    CHECK(cudaStreamEndCapture(side, &graph) == kCaptureUnmatched);
    check_invalidated(stream);
  }
  cudaGetLastError();
}
