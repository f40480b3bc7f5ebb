#include <cerrno>

#include "setup.h"

using namespace setup;
using flight::MemoryKind;
using runtime::WakeReason;

namespace {

auto& notes() { return runtime_double::state.memory; }

}  // namespace

TEST_CASE("allocations and frees reach the ledger, also while the process is inert") {
  Process p;
  void* address = nullptr;
  p.cuda->next_address(0x7000);
  CHECK(call_cudaMalloc(&address, Bytes{512}) == CudaResult::kSuccess);
  CHECK(address == reinterpret_cast<void*>(0x7000));
  REQUIRE(notes().size() == 1);
  CHECK(notes()[0].what == "allocated");
  CHECK(notes()[0].kind == MemoryKind::kDevice);
  CHECK(notes()[0].address == 0x7000);
  CHECK(notes()[0].bytes == 512);
  CHECK(call_cudaFree(address) == CudaResult::kSuccess);
  CHECK(notes()[1].what == "freed");
  CHECK(notes()[1].address == 0x7000);
  CHECK(notes().size() == 2);
  CHECK_FALSE(runtime::recorder());
}

TEST_CASE("every kind of allocation under its own name") {
  Process p;
  void* address = nullptr;
  call_cudaMallocAsync(&address, Bytes{1}, stream(1));
  call_cudaMallocAsync_ptsz(&address, Bytes{1}, stream(1));
  call_cudaMallocFromPoolAsync(&address, Bytes{1}, nullptr, stream(1));
  call_cudaMallocManaged(&address, Bytes{1}, 1);
  call_cudaHostAlloc(&address, Bytes{1}, 0);
  call_cudaMallocHost(&address, Bytes{1});
  call_cudaHostRegister(reinterpret_cast<void*>(0x8000), Bytes{9}, 0);
  MemoryKind kinds[] = {MemoryKind::kPool, MemoryKind::kPool, MemoryKind::kPool, MemoryKind::kManaged,
                        MemoryKind::kHost, MemoryKind::kHost, MemoryKind::kRegistered};
  REQUIRE(notes().size() == 7);
  for (unsigned i = 0; i < 7; ++i) {
    CHECK(notes()[i].what == "allocated");
    CHECK(notes()[i].kind == kinds[i]);
  }
  CHECK(notes()[6].address == 0x8000);
  CHECK(notes()[6].bytes == 9);
}

TEST_CASE("a failed allocation, a failed free, and cudaFree(nullptr)") {
  Process p;
  void* address = nullptr;
  p.cuda->returns("cudaMalloc", 2);
  CHECK(call_cudaMalloc(&address, Bytes{4096}) == CudaResult{2});
  REQUIRE(notes().size() == 1);
  CHECK(notes()[0].what == "failed");
  CHECK(notes()[0].bytes == 4096);
  p.cuda->returns("cudaFree", 1);
  call_cudaFree(reinterpret_cast<void*>(0x9000));
  REQUIRE(notes().size() == 3);
  CHECK(notes()[2].what == "restored");
  CHECK(notes()[2].bytes == 77);
  call_cudaFree(nullptr);
  CHECK(notes().size() == 3);
  CHECK(p.cuda->count("cudaFree") == 2);
}

TEST_CASE("the first device, and the first allocation on it, may wake the process") {
  Process p;
  void* address = nullptr;
  auto& wakes = runtime_double::state.wakes;
  call_cudaSetDevice(0);
  call_cudaMalloc(&address, Bytes{1});
  REQUIRE(wakes.size() == 2);
  CHECK(wakes[0] == WakeReason::kSetDevice);
  CHECK(wakes[1] == WakeReason::kAllocation);
  call_cudaHostAlloc(&address, Bytes{1}, 0);
  call_cudaFree(nullptr);
  CHECK(wakes.size() == 2);
  runtime_double::wake_up();
  call_cudaSetDevice(0);
  CHECK(wakes.size() == 2);
}

TEST_CASE("a thread inside cudaFree says so") {
  Process p;
  runtime_double::wake_up();
  static Process* process;
  static int seen;
  process = &p;
  seen = 0;
  p.cuda->on_call([](const char*) {
    std::uint32_t wanted = process->writer().string("cudaFree");
    for (std::uint32_t i = 0; i < flight::kThreadEntries; ++i) {
      seen += process->writer().thread_entry(i).inside.load() == wanted;
    }
  });
  call_cudaFree(reinterpret_cast<void*>(0x9000));
  CHECK(seen == 1);
}

TEST_CASE("calls that take or give back memory are timed, those inside NCCL are not") {
  Process p;
  runtime_double::wake_up();
  void* address = nullptr;
  call_cudaMalloc(&address, Bytes{1});
  call_cudaFree(address);
  call_cudaDeviceSynchronize();
  CHECK(runtime_double::state.timed == 2);
  p.nccl->on_call([](const char*) {
    void* own = nullptr;
    call_cudaMalloc(&own, Bytes{1});
  });
  p.communicator();
  CHECK(runtime_double::state.timed == 2);
}

TEST_CASE("device memory is said to change from before the real call until the ledger knows, that of the host is not") {
  Process p;
  static std::vector<int> inside;  // the real call
  inside.clear();
  p.cuda->on_call([](const char*) { inside.push_back(runtime_double::state.changing); });
  void* address = nullptr;
  call_cudaMalloc(&address, Bytes{1});
  call_cudaFree(address);
  call_cudaMallocManaged(&address, Bytes{1}, 1);
  call_cudaMallocAsync(&address, Bytes{1}, stream(1));
  call_cudaFreeAsync(address, stream(1));
  p.cuda->returns("cudaMalloc", 2);
  call_cudaMalloc(&address, Bytes{1});
  CHECK(inside == std::vector<int>(6, 1));
  inside.clear();
  call_cudaHostAlloc(&address, Bytes{1}, 0);
  call_cudaFreeHost(address);
  call_cudaHostRegister(reinterpret_cast<void*>(0x8000), Bytes{9}, 0);
  call_cudaHostUnregister(reinterpret_cast<void*>(0x8000));
  call_cudaDeviceSynchronize();
  CHECK(inside == std::vector<int>(5, 0));
  CHECK(runtime_double::state.changing == 0);
  for (const auto& note : notes()) CHECK(note.changing == (note.kind != MemoryKind::kHost && note.kind != MemoryKind::kRegistered));
}

TEST_CASE("driver entry points are replaced only where they were found") {
  Process p;
  void* function = nullptr;
  int status = 0;
  call_cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 12000, 0, &status);
  CHECK(function == reinterpret_cast<void*>(0x6000));
  call_cudaGetDriverEntryPoint("cuInit", &function, 0, &status);
  CHECK(function == reinterpret_cast<void*>(0x5000));
  p.cuda->returns("cudaGetDriverEntryPoint", 1);
  function = nullptr;
  call_cudaGetDriverEntryPoint("cuMemCreate", &function, 0, &status);
  CHECK(function == nullptr);
}

TEST_CASE("graph launches count once they are accepted") {
  Process p;
  runtime_double::wake_up();
  call_cudaGraphLaunch(nullptr, stream(1));
  p.cuda->returns("cudaGraphLaunch", 1);
  call_cudaGraphLaunch(nullptr, stream(1));
  call_cudaGraphLaunch_ptsz(nullptr, stream(1));
  CHECK(runtime_double::state.graph_launches == 2);
}

TEST_CASE("disabled: no note of anything") {
  Process p;
  runtime::disabled_slot = true;
  void* address = nullptr;
  call_cudaMalloc(&address, Bytes{1});
  call_cudaFree(address);
  call_cudaSetDevice(0);
  CHECK(notes().empty());
  CHECK(runtime_double::state.wakes.empty());
  CHECK(p.cuda->count("cudaMalloc") == 1);
}

TEST_CASE("errno passes through the wrappers of CUDA") {
  Process p;
  runtime_double::wake_up();
  void* address = nullptr;
  p.cuda->sets_errno("cudaFree");
  errno = 17;
  call_cudaMalloc(&address, Bytes{1});
  CHECK(errno == 17);
  call_cudaFree(address);
  CHECK(p.cuda->errno_seen() == 17);
  CHECK(errno == 42);
  errno = 0;
}

TEST_CASE("a thread that waits for the GPU says so, and gets what the real function returns") {
  Process p;
  runtime_double::wake_up();
  static Process* process;
  static int seen;
  process = &p;
  seen = 0;
  p.cuda->on_call([](const char* name) {
    std::uint32_t wanted = process->writer().string(name);
    for (std::uint32_t i = 0; i < flight::kThreadEntries; ++i) {
      seen += process->writer().thread_entry(i).inside.load() == wanted;
    }
  });
  p.cuda->returns("cudaStreamSynchronize", 700);
  CHECK(call_cudaStreamSynchronize(stream(1)) == CudaResult{700});
  CHECK(call_cudaStreamSynchronize_ptsz(stream(1)) == CudaResult::kSuccess);
  CHECK(call_cudaEventSynchronize(nullptr) == CudaResult::kSuccess);
  CHECK(call_cudaDeviceSynchronize() == CudaResult::kSuccess);
  CHECK(seen == 4);
  CHECK(notes().empty());
}

TEST_CASE("what NCCL allocates is noted, and the thread is said to be inside NCCL") {
  Process p;
  static Process* process;
  process = &p;
  p.nccl->on_call([](const char* name) {
    if (std::string(name) != "ncclCommInitRank") return;
    void* address = nullptr;
    call_cudaMalloc(&address, Bytes{1});
    std::uint32_t wanted = process->writer().string("ncclCommInitRank");
    int inside = 0;
    for (std::uint32_t i = 0; i < flight::kThreadEntries; ++i) {
      inside += process->writer().thread_entry(i).inside.load() == wanted;
    }
    CHECK(inside == 1);
  });
  p.communicator();
  REQUIRE(notes().size() == 1);
  CHECK(notes()[0].what == "allocated");
}
