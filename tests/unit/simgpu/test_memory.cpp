#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "api.h"
#include "catch.h"
#include "child.h"
#include "gate.h"

using namespace simgpu;

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGiB = size_t{1} << 30;

size_t free_memory() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == kSuccess);
  CHECK(free_bytes <= total_bytes);
  return free_bytes;
}

size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t all = 0;
  size_t resident = 0;
  statm >> all >> resident;
  return resident * 4096;
}

// cudaPointerAttributes.
struct Attributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};

int type_of(const void* address) {
  Attributes attributes;
  REQUIRE(cudaPointerGetAttributes(&attributes, address) == kSuccess);
  return attributes.type;
}

}  // namespace

// Two processes on one card: what one has taken the other cannot have, until it is gone.
TEST_CASE("two processes", "[.machine]") {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t other = fork();
  if (other == 0) {
    void* memory = nullptr;
    char done = cudaMalloc(&memory, 60 * kGiB) == kSuccess ? 'y' : 'n';
    if (write(ready[1], &done, 1) == 1) pause();
    _exit(0);
  }
  char done = 'n';
  REQUIRE(read(ready[0], &done, 1) == 1);
  REQUIRE(done == 'y');
  CHECK(free_memory() == 20 * kGiB);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 30 * kGiB) == kOutOfMemory);
  CHECK(cudaMalloc(&memory, 10 * kGiB) == kSuccess);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  CHECK(free_memory() == 70 * kGiB);
  CHECK(cudaMalloc(&memory, 30 * kGiB) == kSuccess);
}

TEST_CASE("processes with one machine share its memory") {
  char path[] = "/tmp/simgpu-machine-XXXXXX";
  const int file = mkstemp(path);
  REQUIRE(file >= 0);
  const ChildResult shared =
      run_test_in_child("[.machine]", {"SIMGPU_MACHINE=" + std::string(path), "SIMGPU_VRAM_GB=80"});
  INFO(shared.output);
  CHECK(shared.status == 0);
  unlink(path);
  close(file);
}

TEST_CASE("allocations count against their device") {
  const size_t before = free_memory();
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 10 * kMiB) == kSuccess);
  CHECK(free_memory() == before - 10 * kMiB);
  REQUIRE(cudaSetDevice(1) == kSuccess);
  CHECK(free_memory() == before);
  REQUIRE(cudaSetDevice(0) == kSuccess);
  size_t driver_free = 0;
  size_t driver_total = 0;
  REQUIRE(cuMemGetInfo_v2(&driver_free, &driver_total) == kSuccess);
  CHECK(driver_free == before - 10 * kMiB);
  REQUIRE(cudaFree(memory) == kSuccess);
  CHECK(free_memory() == before);
}

TEST_CASE("a full device refuses, and the last error says so") {
  cudaGetLastError();
  const size_t before = free_memory();
  void* most = nullptr;
  REQUIRE(cudaMalloc(&most, before - 4096) == kSuccess);
  void* more = &more;
  CHECK(cudaMalloc(&more, 8192) == kOutOfMemory);
  CHECK(more == nullptr);
  CHECK(cudaGetLastError() == kOutOfMemory);
  CHECK(free_memory() == 4096);
  REQUIRE(cudaFree(most) == kSuccess);
  CHECK(cudaMalloc(&more, ~size_t{0}) == kOutOfMemory);
  cudaGetLastError();
  CHECK(free_memory() == before);
}

TEST_CASE("the device's size is a setting") {
  CHECK(run_test_in_child("[.size]", {"SIMGPU_VRAM_BYTES=300M"}).status == 0);
}

TEST_CASE("one device may be smaller than the others") {
  CHECK(run_test_in_child("[.sizes]", {"SIMGPU_VRAM_BYTES=3G,1:300M,40:1G", "SIMGPU_DEVICES=3"}).status == 0);
  CHECK(run_test_in_child("[.sizes]", {"SIMGPU_VRAM_BYTES=1:300M", "SIMGPU_VRAM_GB=3", "SIMGPU_DEVICES=3"})
            .status == 0);
  const ChildResult bad = run_test_in_child("[.sizes]", {"SIMGPU_VRAM_BYTES=3G,one:300M"});
  CHECK(bad.status != 0);
  CHECK(bad.output.find("SIMGPU_VRAM_BYTES=3G,one:300M is not") != std::string::npos);
}

TEST_CASE("sizes", "[.sizes]") {
  for (const auto& [device, bytes] : {std::pair{0, 3072 * kMiB}, {1, 300 * kMiB}, {2, 3072 * kMiB}}) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    REQUIRE(cudaSetDevice(device) == kSuccess);
    REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == kSuccess);
    CHECK(total_bytes == bytes);
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, 400 * kMiB) == (device == 1 ? kOutOfMemory : kSuccess));
    cudaGetLastError();
  }
}

TEST_CASE("size", "[.size]") {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == kSuccess);
  CHECK(total_bytes == 300 * kMiB);
}

TEST_CASE("untouched memory costs nothing, and copying it leaves it so") {
  void* first = nullptr;
  void* second = nullptr;
  REQUIRE(cudaMalloc(&first, 4 * kGiB) == kSuccess);
  REQUIRE(cudaMalloc(&second, 4 * kGiB) == kSuccess);
  const size_t before = resident_bytes();
  char* bytes = static_cast<char*>(first);
  bytes[3 * kGiB + 5] = 42;
  REQUIRE(cudaMemcpy(second, first, 4 * kGiB, kOnDevice) == kSuccess);
  CHECK(static_cast<char*>(second)[3 * kGiB + 5] == 42);
  REQUIRE(cudaMemset(second, 0, 4 * kGiB) == kSuccess);
  CHECK(static_cast<char*>(second)[3 * kGiB + 5] == 0);
  CHECK(resident_bytes() < before + 64 * kMiB);
  REQUIRE(cudaFree(first) == kSuccess);
  REQUIRE(cudaFree(second) == kSuccess);
}

TEST_CASE("a copy overwrites what was there with the zeros of untouched pages") {
  void* source = nullptr;
  void* target = nullptr;
  REQUIRE(cudaMalloc(&source, kMiB) == kSuccess);
  REQUIRE(cudaMalloc(&target, kMiB) == kSuccess);
  REQUIRE(cudaMemset(target, 9, kMiB) == kSuccess);
  static_cast<char*>(source)[500000] = 1;
  REQUIRE(cudaMemcpy(target, source, kMiB - 3, kOnDevice) == kSuccess);
  const char* bytes = static_cast<char*>(target);
  size_t wrong = 0;
  for (size_t i = 0; i < kMiB - 3; ++i) wrong += bytes[i] != (i == 500000 ? 1 : 0);
  CHECK(wrong == 0);
  CHECK(bytes[kMiB - 1] == 9);
  REQUIRE(cudaFree(source) == kSuccess);
  REQUIRE(cudaFree(target) == kSuccess);
}

TEST_CASE("copies that leave their allocation are refused") {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 4096) == kSuccess);
  std::vector<char> host(8192);
  CHECK(cudaMemcpy(memory, host.data(), 8192, kToDevice) == kInvalidValue);
  CHECK(cudaMemcpy(memory, host.data(), 16, kOnDevice) == kInvalidValue);  // a host address as a device's
  CHECK(cudaMemcpy(memory, host.data(), 16, 77) == kInvalidMemcpyDirection);
  CHECK(cudaMemset(host.data(), 0, 16) == kInvalidValue);
  cudaGetLastError();
  REQUIRE(cudaFree(memory) == kSuccess);
}

TEST_CASE("each kind of memory is freed by its own function") {
  void* device_memory = nullptr;
  void* host_memory = nullptr;
  REQUIRE(cudaMalloc(&device_memory, 16) == kSuccess);
  REQUIRE(cudaMallocHost(&host_memory, 16) == kSuccess);
  CHECK(cudaFreeHost(device_memory) == kInvalidValue);
  CHECK(cudaFree(host_memory) == kInvalidValue);
  CHECK(cudaFree(static_cast<char*>(device_memory) + 1) == kInvalidValue);
  CHECK(cudaFree(device_memory) == kSuccess);
  CHECK(cudaFree(device_memory) == kInvalidValue);
  CHECK(cudaFreeHost(host_memory) == kSuccess);
  CHECK(cudaFree(nullptr) == kSuccess);
  cudaGetLastError();
}

TEST_CASE("an address is known for what it is") {
  void* memory = nullptr;
  void* managed = nullptr;
  void* pinned = nullptr;
  int on_stack = 0;
  REQUIRE(cudaMalloc(&memory, 16) == kSuccess);
  REQUIRE(cudaMallocManaged(&managed, 16, 1) == kSuccess);
  REQUIRE(cudaHostAlloc(&pinned, 16, 0) == kSuccess);
  CHECK(type_of(&on_stack) == 0);
  CHECK(type_of(pinned) == 1);
  CHECK(type_of(static_cast<char*>(memory) + 8) == 2);
  CHECK(type_of(managed) == 3);
  REQUIRE(cudaFree(memory) == kSuccess);
  REQUIRE(cudaFree(managed) == kSuccess);
  REQUIRE(cudaFreeHost(pinned) == kSuccess);
  CHECK(type_of(memory) == 0);
}

TEST_CASE("memory of the program is pinned and unpinned") {
  std::vector<char> memory(8192);
  REQUIRE(cudaHostRegister(memory.data(), memory.size(), 0) == kSuccess);
  CHECK(type_of(memory.data()) == 1);
  CHECK(cudaHostRegister(memory.data(), memory.size(), 0) == kHostAlreadyRegistered);
  REQUIRE(cudaHostUnregister(memory.data()) == kSuccess);
  CHECK(cudaHostUnregister(memory.data()) == kHostNotRegistered);
  CHECK(type_of(memory.data()) == 0);
  cudaGetLastError();
}

TEST_CASE("stream-ordered memory is given back when the stream gets there") {
  TestStream stream;
  Gate gate;
  const size_t before = free_memory();
  Handle pool = nullptr;
  REQUIRE(cudaDeviceGetDefaultMemPool(&pool, 0) == kSuccess);
  void* memory = nullptr;
  void* second = nullptr;
  REQUIRE(cudaMallocAsync(&memory, kMiB, stream) == kSuccess);
  REQUIRE(cudaMallocFromPoolAsync(&second, kMiB, pool, stream) == kSuccess);
  uint64_t used = 0;
  REQUIRE(cudaMemPoolGetAttribute(pool, 7, &used) == kSuccess);
  CHECK(used == 2 * kMiB);
  gate.close(stream);
  REQUIRE(cudaFreeAsync(memory, stream) == kSuccess);
  CHECK(free_memory() == before - 2 * kMiB);
  gate.open();
  REQUIRE(cudaStreamSynchronize(stream) == kSuccess);
  CHECK(free_memory() == before - kMiB);
  REQUIRE(cudaFree(second) == kSuccess);
  CHECK(free_memory() == before);
}

TEST_CASE("cudaFree waits for the work of its device") {
  TestStream stream;
  Gate gate;
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, kMiB) == kSuccess);
  gate.close(stream);
  REQUIRE(cudaMemsetAsync(memory, 1, kMiB, stream) == kSuccess);
  std::thread opener([&gate] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
  });
  REQUIRE(cudaFree(memory) == kSuccess);
  CHECK(cudaStreamQuery(stream) == kSuccess);
  opener.join();
}
