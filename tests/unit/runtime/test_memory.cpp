// The memory ledger: sums, peaks, steps, the allocator's retry, virtual memory.
#include <string_view>
#include <thread>

#include "catch.h"
#include "core/rank/allocator_peaks.h"
#include "core/rank/context.h"
#include "fakes.h"
#include "interpose/runtime/ledger.h"
#include "interpose/runtime/memory.h"

using namespace dshang;
using namespace dshang::flight;
using namespace dshang::interpose;

namespace {

const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

struct Bench {
  Bench() {
    memory::fall_asleep();  // nothing of an earlier test counts
    memory::wake(recorder.writer());
  }
  ~Bench() { memory::fall_asleep(); }
  fakes::Gpu gpu;
  fakes::Recorder recorder;
  MemoryLive& live() { return recorder.header().memory; }
  std::uint64_t bytes(MemoryKind kind) { return live().bytes[static_cast<unsigned>(kind)].load(); }
  std::uint64_t peak(MemoryKind kind) { return live().peak[static_cast<unsigned>(kind)].load(); }
  const AllocFailure& failure(std::uint64_t n) {
    const SectionInfo& section = recorder.header().sections[static_cast<unsigned>(Section::kAllocFailures)];
    return reinterpret_cast<const AllocFailure*>(reinterpret_cast<char*>(&recorder.header()) + section.offset)[n];
  }
  const MemoryStep& step(std::uint64_t n) {
    const SectionInfo& section = recorder.header().sections[static_cast<unsigned>(Section::kMemorySteps)];
    return reinterpret_cast<const MemoryStep*>(reinterpret_cast<char*>(&recorder.header()) + section.offset)[n];
  }
};

}  // namespace

TEST_CASE("bytes are counted by kind and given back by address alone") {
  Bench bench;
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 100);
  runtime::allocated(MemoryKind::kManaged, at(0x2000), 50);
  CHECK(bench.bytes(MemoryKind::kDevice) == 100);
  CHECK(bench.bytes(MemoryKind::kManaged) == 50);
  runtime::Freed freed = runtime::freed(MemoryKind::kDevice, at(0x2000));
  CHECK(freed.kind == MemoryKind::kManaged);
  CHECK(freed.bytes == 50);
  CHECK(bench.bytes(MemoryKind::kManaged) == 0);
  runtime::restored(freed, at(0x2000));
  CHECK(bench.bytes(MemoryKind::kManaged) == 50);
  CHECK(bench.live().frees.load() == 0);
  runtime::freed(MemoryKind::kDevice, at(0x2000));
  runtime::freed(MemoryKind::kDevice, at(0x1000));
  CHECK(runtime::freed(MemoryKind::kDevice, at(0x1000)).bytes == 0);
  CHECK(bench.bytes(MemoryKind::kDevice) == 0);
  CHECK(bench.live().allocations.load() == 2);
}

TEST_CASE("what was allocated while the process was inert counts once it is awake") {
  memory::fall_asleep();
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 700);
  runtime::allocated(MemoryKind::kDevice, at(0x2000), 300);
  runtime::freed(MemoryKind::kDevice, at(0x1000));
  fakes::Recorder recorder;
  memory::wake(recorder.writer());
  MemoryLive& live = recorder.header().memory;
  CHECK(live.bytes[0].load() == 300);
  CHECK(live.peak[0].load() == 1000);
  CHECK(live.allocations.load() == 2);
  runtime::freed(MemoryKind::kDevice, at(0x2000));
  CHECK(live.bytes[0].load() == 0);
  memory::fall_asleep();
}

TEST_CASE("a forked child does not count its parent's memory") {
  Bench bench;
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 100);
  memory::fall_asleep();
  fakes::Recorder child;
  memory::wake(child.writer());
  runtime::freed(MemoryKind::kDevice, at(0x1000));
  CHECK(child.header().memory.bytes[0].load() == 0);
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 30);
  CHECK(child.header().memory.bytes[0].load() == 30);
  CHECK(bench.bytes(MemoryKind::kDevice) == 100);
}

TEST_CASE("an address given out twice was freed where no wrapper saw it") {
  Bench bench;
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 100);
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 40);
  CHECK(bench.bytes(MemoryKind::kDevice) == 40);
  runtime::freed(MemoryKind::kDevice, at(0x1000));
  CHECK(bench.bytes(MemoryKind::kDevice) == 0);
}

TEST_CASE("a step is closed with its own peak and counts") {
  Bench bench;
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 100);
  memory::memory_step(0);
  CHECK(bench.step(0).step == kNoStep);
  CHECK(bench.step(0).allocations == 1);
  bench.recorder.header().step.store(0);
  runtime::allocated(MemoryKind::kDevice, at(0x2000), 400);
  runtime::freed(MemoryKind::kDevice, at(0x2000));
  rank::give_allocator_peaks(5000, 4000);
  memory::memory_step(1);
  const MemoryStep& first = bench.step(1);
  CHECK(first.stamp.load() == complete_stamp(1));
  CHECK(first.step == 0);
  CHECK(first.live[0] == 100);
  CHECK(first.peak[0] == 500);
  CHECK(first.allocations == 1);
  CHECK(first.frees == 1);
  CHECK(first.reserved_peak == 5000);
  CHECK(first.allocated_peak == 4000);
  bench.recorder.header().step.store(1);
  memory::memory_step(2);
  CHECK(bench.step(2).peak[0] == 100);
  CHECK(bench.step(2).allocations == 0);
  CHECK(bench.step(2).reserved_peak == kUnknownBytes);
}

TEST_CASE("a step is closed with what the probe and the poller know of it") {
  Bench bench;
  std::uint32_t forward = bench.recorder.writer().string("forward", 7), backward = bench.recorder.writer().string("backward", 8);
  rank::push_phase(bench.recorder.writer(), forward, 0);
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 100);
  rank::pop_phase(bench.recorder.writer());
  runtime::freed(MemoryKind::kDevice, at(0x1000));
  bench.gpu.free_bytes = 700;
  bench.gpu.total_bytes = 1000;
  CHECK(memory::look_at_device());
  rank::give_batch({4, 2048, 0, 0});
  rank::give_batch({4, 512, 0, 0});  // a shorter micro-batch of the same step
  rank::give_phase_peak(forward, 60, 100, 50);
  rank::give_phase_peak(backward, 90, 100, 40);
  rank::give_phase_peak(forward, 55, 100, 50);
  memory::memory_step(1);
  const MemoryStep& closed = bench.step(0);
  CHECK(closed.peak_phase == forward);
  CHECK(closed.device_free == 700);
  CHECK(closed.device_total == 1000);
  CHECK(closed.batch[0] == 4);
  CHECK(closed.batch[1] == 2048);
  CHECK(closed.batch[2] == 0);
  CHECK(closed.phases[0].phase == forward);
  CHECK(closed.phases[0].allocated == 60);
  CHECK(closed.phases[1].phase == backward);
  CHECK(closed.phases[1].allocated == 90);
  CHECK(closed.phases[2].phase == 0);
  memory::memory_step(2);
  CHECK(bench.step(1).batch[0] == 0);
  CHECK(bench.step(1).phases[0].phase == 0);
  CHECK(bench.step(1).peak_phase == 0);
}

TEST_CASE("what others hold is not learned while the process takes or gives back memory") {
  Bench bench;
  bench.gpu.total_bytes = 1000;
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 600);
  auto others = [&] {
    memory::memory_step(0);
    const MemoryStep& step = bench.step(bench.recorder.header().memory_step_head.load() - 1);
    if (step.device_free == kUnknownBytes) return kUnknownBytes;
    return step.device_total - step.device_free - step.live[static_cast<unsigned>(MemoryKind::kDevice)];
  };
  SECTION("nothing known before stays unknown") {
    bench.gpu.free_bytes = 300;
    runtime::MemoryChange change;
    CHECK_FALSE(memory::look_at_device());
    CHECK(others() == kUnknownBytes);
  }
  SECTION("what is known stays") {
    bench.gpu.free_bytes = 300;
    CHECK(memory::look_at_device());
    CHECK(others() == 100);
    SECTION("a release that waits for the device") {
      runtime::MemoryChange change;
      runtime::freed(MemoryKind::kDevice, at(0x1000));
      CHECK_FALSE(memory::look_at_device());
    }
    SECTION("a request that the ledger has not heard of") {
      runtime::MemoryChange change;
      bench.gpu.free_bytes = 50;
      CHECK_FALSE(memory::look_at_device());
    }
    SECTION("a request that comes while the driver is asked") {
      bench.gpu.while_asked = [] {
        runtime::MemoryChange change;
        runtime::freed(MemoryKind::kDevice, at(0x1000));
      };
      CHECK(memory::look_at_device());  // the driver was asked, and is not at once again
    }
    SECTION("one of two threads is done") {
      runtime::MemoryChange change;
      {
        runtime::MemoryChange other;
        runtime::freed(MemoryKind::kDevice, at(0x1000));
      }
      CHECK_FALSE(memory::look_at_device());
    }
    CHECK(others() == 100);
    bench.gpu.while_asked = nullptr;
    bench.gpu.free_bytes = bench.bytes(MemoryKind::kDevice) ? 250 : 850;
    CHECK(memory::look_at_device());
    CHECK(others() == 150);
  }
  SECTION("a child has none of its parent's calls under way") {
    auto* change = new runtime::MemoryChange;  // of a thread that the child does not have
    memory::fall_asleep();
    memory::wake(bench.recorder.writer());
    bench.gpu.free_bytes = 300;
    CHECK(memory::look_at_device());
    delete change;
    memory::fall_asleep();
  }
}

TEST_CASE("a failed request knows the batch and the allocator's state") {
  Bench bench;
  rank::give_batch({2, 4096, 0, 0});
  rank::give_phase_peak(bench.recorder.writer().string("forward", 7), 60, 100, 50);
  runtime::allocated(MemoryKind::kPool, at(0x1000), 30);
  runtime::allocation_failed(MemoryKind::kDevice, 5000, 2);
  const auto& failure = bench.failure(0);
  CHECK(failure.batch[1] == 4096);
  CHECK(failure.allocator_reserved == 100);
  CHECK(failure.allocator_allocated == 50);
  CHECK(failure.live_other == 30);
}

TEST_CASE("a program without steps gets records by time, where something happened") {
  Bench bench;
  memory::memory_period();
  CHECK(bench.recorder.header().memory_step_head.load() == 0);
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 100);
  memory::memory_period();
  memory::memory_period();
  CHECK(bench.recorder.header().memory_step_head.load() == 1);
  CHECK(bench.step(0).step == kNoStep);
  CHECK(bench.step(0).allocations == 1);
  bench.recorder.header().step.store(0);
  runtime::freed(MemoryKind::kDevice, at(0x1000));
  memory::memory_period();
  CHECK(bench.recorder.header().memory_step_head.load() == 1);
}

TEST_CASE("a failed request is recorded with what the device had left") {
  Bench bench;
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 100);
  runtime::allocation_failed(MemoryKind::kDevice, 9000, 2);
  CHECK(bench.live().failures.load() == 1);
  CHECK(bench.failure(0).size == 9000);
  CHECK(bench.failure(0).free == 1000);
  CHECK(bench.failure(0).total == 4000);
  CHECK(bench.failure(0).live_device == 100);
  CHECK(bench.failure(0).result == 2);
  SECTION("other errors are not about memory") {
    runtime::allocation_failed(MemoryKind::kDevice, 9000, 700);
    CHECK(bench.live().failures.load() == 1);
  }
}

TEST_CASE("the allocator's retry is a failure, frees, and the same request again") {
  Bench bench;
  runtime::allocated(MemoryKind::kDevice, at(0x1000), 100);
  runtime::allocation_failed(MemoryKind::kDevice, 9000, 2);
  SECTION("it succeeds") {
    runtime::freed(MemoryKind::kDevice, at(0x1000));
    runtime::allocated(MemoryKind::kDevice, at(0x4000), 9000);
    CHECK(bench.live().retries.load() == 1);
    CHECK(bench.failure(0).retried == 1);
  }
  SECTION("it fails once more in between") {
    runtime::freed(MemoryKind::kDevice, at(0x1000));
    runtime::allocation_failed(MemoryKind::kDevice, 9000, 2);
    runtime::allocated(MemoryKind::kDevice, at(0x4000), 9000);
    CHECK(bench.live().retries.load() == 1);
    CHECK(bench.failure(0).retried == 1);
    CHECK(bench.failure(1).retried == 1);
  }
  SECTION("another size is another request") {
    runtime::freed(MemoryKind::kDevice, at(0x1000));
    runtime::allocated(MemoryKind::kDevice, at(0x4000), 100);
    CHECK(bench.live().retries.load() == 0);
    CHECK(bench.failure(0).retried == 0);
  }
  SECTION("without a free it is no retry of the allocator") {
    runtime::allocated(MemoryKind::kDevice, at(0x4000), 9000);
    CHECK(bench.live().retries.load() == 0);
  }
  SECTION("another thread's request is not this one's") {
    std::thread([] {
      runtime::freed(MemoryKind::kDevice, at(0x1000));
      runtime::allocated(MemoryKind::kDevice, at(0x4000), 9000);
    }).join();
    CHECK(bench.live().retries.load() == 0);
  }
  runtime::freed(MemoryKind::kDevice, at(0x4000));
  runtime::freed(MemoryKind::kDevice, at(0x1000));
}

TEST_CASE("what taking and giving back costs is told by the step") {
  Bench bench;
  auto close = [&]() -> const MemoryStep& {
    memory::memory_step(0);
    return bench.step(bench.recorder.header().memory_step_head.load() - 1);
  };
  constexpr std::uint64_t kStart = 5'000'000'000;
  auto refuse = [&](std::uint64_t begin) {
    runtime::allocation_failed(MemoryKind::kDevice, 9000, 2);
    runtime::memory_call(begin, begin + 10);
  };
  auto give_back = [&](std::uint64_t begin) {
    runtime::freed(MemoryKind::kDevice, at(0x1000));
    runtime::memory_call(begin, begin + 30);
  };
  auto take = [&](std::uint64_t bytes, std::uint64_t begin) {
    runtime::allocated(MemoryKind::kDevice, at(0x4000 + bytes), bytes);
    runtime::memory_call(begin, begin + 10);
  };
  SECTION("calls alone") {
    give_back(kStart);
    take(500, kStart + 100);
    CHECK(close().call_ns == 40);
    CHECK(close().call_ns == 0);
  }
  SECTION("from a refused request to the one that succeeds, with what lies between") {
    refuse(kStart);
    give_back(kStart + 20);
    refuse(kStart + 60);
    give_back(kStart + 80);
    take(9000, kStart + 120);
    const MemoryStep& step = close();
    CHECK(step.retry_ns == 130);
    CHECK(step.call_ns == 130);
    take(700, kStart + 200);
    CHECK(close().retry_ns == 0);
  }
  SECTION("a thread that went on with something else does not try again") {
    refuse(kStart);
    give_back(kStart + 20);
    take(500, kStart + 60);
    take(9000, kStart + 500);
    const MemoryStep& step = close();
    CHECK(step.retry_ns == 0);
    CHECK(step.call_ns == 60);
  }
  SECTION("what comes seconds later is no part of it") {
    refuse(kStart);
    give_back(kStart + 3'000'000'000);
    take(9000, kStart + 3'000'000'050);
    CHECK(close().retry_ns == 60);
  }
}

namespace {

int next_result = 0;
int looked = 0;  // looks at the device that asked the driver, from inside these
int create(unsigned long long* handle, std::size_t, const void*, unsigned long long) {
  *handle = 0x77;
  looked += memory::look_at_device();
  return next_result;
}
int release(unsigned long long) {
  looked += memory::look_at_device();
  return 0;
}
int map(unsigned long long, std::size_t, std::size_t, unsigned long long, unsigned long long) { return 0; }
int unmap(unsigned long long, std::size_t) {
  looked += memory::look_at_device();
  return 0;
}

}  // namespace

TEST_CASE("virtual memory is counted through the driver functions that the host is given") {
  Bench bench;
  struct {
    int type, handle_types, location_type, location_id;
  } on_device{1, 0, 1, 0};
  auto get = [](const char* name, auto* real) {
    return reinterpret_cast<decltype(real)>(runtime::replace_driver_entry(name, reinterpret_cast<void*>(real)));
  };
  auto* host_create = get("cuMemCreate", &create);
  auto* host_release = get("cuMemRelease", &release);
  auto* host_map = get("cuMemMap", &map);
  auto* host_unmap = get("cuMemUnmap", &unmap);
  CHECK(host_create != &create);
  CHECK(get("cuMemAddressReserve", &unmap) == &unmap);
  unsigned long long handle = 0;
  CHECK(host_create(&handle, 4096, &on_device, 0) == 0);
  CHECK(bench.bytes(MemoryKind::kVirtual) == 4096);
  SECTION("released before it is unmapped, as torch does not do but may") {
    CHECK(host_map(0x10000, 4096, 0, handle, 0) == 0);
    host_release(handle);
    CHECK(bench.bytes(MemoryKind::kVirtual) == 4096);
    host_unmap(0x10000, 4096);
    CHECK(bench.bytes(MemoryKind::kVirtual) == 0);
  }
  SECTION("unmapped, then released; one unmap covers neighbours") {
    host_map(0x10000, 2048, 0, handle, 0);
    host_map(0x10800, 2048, 2048, handle, 0);
    host_unmap(0x10000, 4096);
    CHECK(bench.bytes(MemoryKind::kVirtual) == 4096);
    host_release(handle);
    CHECK(bench.bytes(MemoryKind::kVirtual) == 0);
  }
  SECTION("a failed request is recorded, a refused feature is not") {
    next_result = 2;
    CHECK(host_create(&handle, 8192, &on_device, 0) == 2);
    CHECK(bench.failure(0).kind == MemoryKind::kVirtual);
    next_result = 801;
    CHECK(host_create(&handle, 8192, &on_device, 0) == 801);
    CHECK(bench.live().failures.load() == 1);
    next_result = 0;
    host_release(0x77);
  }
  CHECK(looked == 0);
}

namespace {

// Two versions of the driver's lookup: the older has no last parameter.
int proc_address(const char* name, void** function, int, unsigned long long) {
  *function = std::string_view(name) == "cuMemCreate" ? reinterpret_cast<void*>(&create) : reinterpret_cast<void*>(&unmap);
  return 0;
}
int proc_address_v2(const char* name, void** function, int version, unsigned long long flags, int* status) {
  *status = 7;
  return proc_address(name, function, version, flags);
}

}  // namespace

TEST_CASE("a lookup that the runtime hands out gives what the runtime itself would") {
  Bench bench;
  auto get = [](auto* real) {
    return reinterpret_cast<decltype(real)>(
        runtime::replace_driver_entry("cuGetProcAddress", reinterpret_cast<void*>(real)));
  };
  auto *first = get(&proc_address), *second = get(&proc_address);
  auto* newer = get(&proc_address_v2);
  CHECK(first != &proc_address);
  CHECK(second == first);
  CHECK(newer != &proc_address_v2);
  void *found = nullptr, *other = nullptr;
  int status = 0;
  CHECK(first("cuMemCreate", &found, 11000, 0) == 0);
  CHECK(newer("cuMemAddressReserve", &other, 12000, 0, &status) == 0);
  CHECK(found != reinterpret_cast<void*>(&create));
  CHECK(other == reinterpret_cast<void*>(&unmap));
  CHECK(status == 7);
  CHECK(get(newer) == newer);
}

TEST_CASE("the ledger finds what it was given, from many threads, and says when it is full") {
  static Ledger ledger;
  constexpr unsigned kThreads = 4, kEach = 5000;
  std::vector<std::thread> threads;
  std::atomic<unsigned> wrong{0};
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned round = 0; round < 3; ++round) {
        for (unsigned i = 1; i <= kEach; ++i) {
          bool replaced;
          Allocation old;
          std::uint64_t key = (std::uint64_t{t} * kEach + i) * 512;
          if (!ledger.put(key, {i, MemoryKind::kHost, 0, 0}, &replaced, &old) || replaced) ++wrong;
        }
        for (unsigned i = 1; i <= kEach; ++i) {
          Allocation found;
          if (!ledger.take((std::uint64_t{t} * kEach + i) * 512, &found) || found.bytes != i) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  bool replaced;
  Allocation old;
  std::size_t kept = 0;
  for (std::size_t i = 1; i <= Ledger::kSlots + 1; ++i) kept += ledger.put(i * 256, {}, &replaced, &old);
  CHECK(kept <= Ledger::kSlots);
  CHECK(kept > Ledger::kSlots / 2);
}
