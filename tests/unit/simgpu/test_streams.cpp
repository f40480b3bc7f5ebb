#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "api.h"
#include "catch.h"
#include "child.h"
#include "gate.h"

using namespace simgpu;

namespace {

struct Note {
  std::vector<int>* order;
  int number;
};

void write_note(void* data) {
  const Note* note = static_cast<Note*>(data);
  note->order->push_back(note->number);
}

void write_thread(void* data) { *static_cast<long*>(data) = syscall(SYS_gettid); }

}  // namespace

TEST_CASE("a stream executes in order") {
  TestStream stream;
  Gate gate;
  std::vector<int> order;
  Note notes[] = {{&order, 1}, {&order, 2}, {&order, 3}};
  REQUIRE(gate.close(stream) == kSuccess);
  for (Note& note : notes) REQUIRE(cudaLaunchHostFunc(stream, write_note, &note) == kSuccess);
  CHECK(order.empty());
  gate.open();
  REQUIRE(cudaStreamSynchronize(stream) == kSuccess);
  CHECK(order == std::vector<int>{1, 2, 3});
}

TEST_CASE("the host runs ahead of a stream") {
  TestStream stream;
  Gate gate;
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 4096) == kSuccess);
  unsigned char* bytes = static_cast<unsigned char*>(memory);  // device memory is host memory here
  REQUIRE(cudaMemset(memory, 1, 4096) == kSuccess);
  gate.close(stream);
  REQUIRE(cudaMemsetAsync(memory, 7, 4096, stream) == kSuccess);
  CHECK(bytes[0] == 1);
  CHECK(cudaStreamQuery(stream) == kNotReady);
  cudaGetLastError();
  gate.open();
  REQUIRE(cudaStreamSynchronize(stream) == kSuccess);
  CHECK(bytes[0] == 7);
  CHECK(cudaStreamQuery(stream) == kSuccess);
  REQUIRE(cudaFree(memory) == kSuccess);
}

TEST_CASE("non-blocking streams do not wait for each other nor for the legacy stream") {
  TestStream held;
  TestStream other;
  Gate gate;
  gate.close(held);
  int ran = 0;
  REQUIRE(cudaLaunchHostFunc(
              other, [](void* flag) { *static_cast<int*>(flag) = 1; }, &ran) == kSuccess);
  REQUIRE(cudaStreamSynchronize(other) == kSuccess);
  CHECK(ran == 1);
  REQUIRE(cudaLaunchHostFunc(
              nullptr, [](void* flag) { *static_cast<int*>(flag) = 2; }, &ran) == kSuccess);
  REQUIRE(cudaStreamSynchronize(nullptr) == kSuccess);
  CHECK(ran == 2);
}

TEST_CASE("blocking streams and the legacy stream take turns") {
  TestStream blocking(0);
  Gate gate;
  std::atomic<int> ran{0};
  const auto set = [](void* flag) { ++*static_cast<std::atomic<int>*>(flag); };
  gate.close(blocking);
  REQUIRE(cudaLaunchHostFunc(nullptr, set, &ran) == kSuccess);  // behind the gate
  TestStream second(0);
  REQUIRE(cudaLaunchHostFunc(second, set, &ran) == kSuccess);  // behind the legacy stream
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(ran == 0);
  gate.open();
  REQUIRE(cudaStreamSynchronize(second) == kSuccess);
  CHECK(ran == 2);
}

TEST_CASE("host functions run on a thread of the stream") {
  TestStream stream;
  long thread = 0;
  REQUIRE(cudaLaunchHostFunc(stream, write_thread, &thread) == kSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == kSuccess);
  CHECK(thread != 0);
  CHECK(thread != syscall(SYS_gettid));
}

TEST_CASE("an event orders two streams") {
  TestStream first;
  TestStream second;
  TestEvent event;
  Gate gate;
  std::vector<int> order;
  Note notes[] = {{&order, 1}, {&order, 2}};
  gate.close(first);
  cudaLaunchHostFunc(first, write_note, &notes[0]);
  REQUIRE(cudaEventRecord(event, first) == kSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == kSuccess);
  cudaLaunchHostFunc(second, write_note, &notes[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(order.empty());
  gate.open();
  REQUIRE(cudaStreamSynchronize(second) == kSuccess);
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("a pageable source may be reused when the call returns") {
  TestStream stream;
  Gate gate;
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 16) == kSuccess);
  std::vector<char> source(16, 'a');
  gate.close(stream);
  REQUIRE(cudaMemcpyAsync(memory, source.data(), 16, kToDevice, stream) == kSuccess);
  source.assign(16, 'b');
  gate.open();
  REQUIRE(cudaStreamSynchronize(stream) == kSuccess);
  CHECK(static_cast<char*>(memory)[15] == 'a');
  REQUIRE(cudaFree(memory) == kSuccess);
}

TEST_CASE("a pinned destination is filled by the stream, a pageable one before the call returns") {
  TestStream stream;
  Gate gate;
  void* memory = nullptr;
  void* pinned = nullptr;
  REQUIRE(cudaMalloc(&memory, 16) == kSuccess);
  REQUIRE(cudaHostAlloc(&pinned, 16, 0) == kSuccess);
  REQUIRE(cudaMemset(memory, 5, 16) == kSuccess);
  gate.close(stream);
  REQUIRE(cudaMemcpyAsync(pinned, memory, 16, kToHost, stream) == kSuccess);
  CHECK(static_cast<char*>(pinned)[0] == 0);
  std::thread opener([&gate] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
  });
  char pageable[16] = {};
  REQUIRE(cudaMemcpyAsync(pageable, memory, 16, kToHost, stream) == kSuccess);
  CHECK(pageable[0] == 5);
  CHECK(static_cast<char*>(pinned)[0] == 5);
  opener.join();
  REQUIRE(cudaFreeHost(pinned) == kSuccess);
  REQUIRE(cudaFree(memory) == kSuccess);
}

TEST_CASE("a destroyed stream finishes its work, and its handle is invalid") {
  Handle stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, kNonBlocking) == kSuccess);
  Gate gate;
  std::atomic<int> ran{0};
  gate.close(stream);
  cudaLaunchHostFunc(
      stream, [](void* flag) { *static_cast<std::atomic<int>*>(flag) = 1; }, &ran);
  REQUIRE(cudaStreamDestroy(stream) == kSuccess);
  CHECK(cudaStreamSynchronize(stream) == kInvalidHandle);
  CHECK(cudaStreamDestroy(stream) == kInvalidHandle);
  cudaGetLastError();
  gate.open();
  for (int i = 0; i < 1000 && ran == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(ran == 1);
}

TEST_CASE("the device waits for the work of a destroyed stream, too") {
  Handle stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, kNonBlocking) == kSuccess);
  Gate gate;
  std::atomic<int> ran{0};
  gate.close(stream);
  cudaLaunchHostFunc(stream, [](void* flag) { *static_cast<std::atomic<int>*>(flag) = 1; }, &ran);
  REQUIRE(cudaStreamDestroy(stream) == kSuccess);
  std::thread opener([&gate] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
  });
  REQUIRE(cudaDeviceSynchronize() == kSuccess);
  CHECK(ran == 1);
  opener.join();
}

TEST_CASE("a full launch queue blocks the host") {
  CHECK(run_test_in_child("[.queue]", {"SIMGPU_QUEUE_DEPTH=5"}).status == 0);
}

TEST_CASE("queue depth", "[.queue]") {
  TestStream stream;
  Gate gate;
  gate.close(stream);
  std::atomic<int> launched{0};
  std::thread host([&] {
    for (int i = 0; i < 20; ++i) {
      cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, stream);
      ++launched;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(launched == 5);
  gate.open();
  host.join();
  CHECK(launched == 20);
}
