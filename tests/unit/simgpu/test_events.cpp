#include <chrono>
#include <thread>

#include "api.h"
#include "catch.h"
#include "gate.h"

using namespace simgpu;

TEST_CASE("an event that was never recorded is complete") {
  TestEvent event;
  CHECK(cudaEventQuery(event) == kSuccess);
  CHECK(cudaEventSynchronize(event) == kSuccess);
}

TEST_CASE("an event is ready when its last record has been reached") {
  TestStream stream;
  TestEvent event;
  Gate gate;
  REQUIRE(cudaEventRecord(event, stream) == kSuccess);
  CHECK(cudaEventQuery(event) == kSuccess);
  gate.close(stream);
  REQUIRE(cudaEventRecord(event, stream) == kSuccess);
  CHECK(cudaEventQuery(event) == kNotReady);
  CHECK(cudaGetLastError() == kNotReady);
  gate.open();
  CHECK(cudaEventSynchronize(event) == kSuccess);
  CHECK(cudaEventQuery(event) == kSuccess);
}

TEST_CASE("an event of another device cannot be recorded, but waited for") {
  REQUIRE(cudaSetDevice(0) == kSuccess);
  TestEvent event;
  TestStream own;
  REQUIRE(cudaSetDevice(1) == kSuccess);
  TestStream other;
  CHECK(cudaEventRecord(event, other) == kInvalidHandle);
  CHECK(cudaGetLastError() == kInvalidHandle);
  REQUIRE(cudaEventRecord(event, own) == kSuccess);
  CHECK(cudaStreamWaitEvent(other, event, 0) == kSuccess);
  REQUIRE(cudaSetDevice(0) == kSuccess);
}

TEST_CASE("a destroyed event is invalid, and who waits for it goes on") {
  TestStream first;
  TestStream second;
  Gate gate;
  Handle event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, 2) == kSuccess);
  gate.close(first);
  REQUIRE(cudaEventRecord(event, first) == kSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == kSuccess);
  REQUIRE(cudaEventDestroy(event) == kSuccess);
  CHECK(cudaEventQuery(event) == kInvalidHandle);
  CHECK(cudaEventDestroy(event) == kInvalidHandle);
  cudaGetLastError();
  gate.open();
  CHECK(cudaStreamSynchronize(second) == kSuccess);
}

TEST_CASE("elapsed time needs two completed events with timing") {
  TestStream stream;
  TestEvent start(0);
  TestEvent end(0);
  TestEvent untimed(2);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == kInvalidHandle);
  Gate gate;
  REQUIRE(cudaEventRecord(start, stream) == kSuccess);
  gate.close(stream);
  REQUIRE(cudaEventRecord(end, stream) == kSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == kNotReady);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.open();
  REQUIRE(cudaStreamSynchronize(stream) == kSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == kSuccess);
  CHECK(milliseconds >= 15);
  CHECK(cudaEventElapsedTime(&milliseconds, start, untimed) == kInvalidHandle);
  cudaGetLastError();
}
