#include "core/rank/memory_read.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "catch.h"
#include "core/rank/base_libc.h"
#include "core/rank/task_state.h"

using namespace dshang::rank;

TEST_CASE("memory that is not there is an answer") {
  for (bool by_pipe : {false, true}) {
    CheckedMemory::deny_vm_read(by_pipe);
    CheckedMemory memory;
    long page = sysconf(_SC_PAGESIZE);
    char* two = static_cast<char*>(mmap(nullptr, static_cast<size_t>(2 * page), PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(two + page, static_cast<size_t>(page));
    two[page - 4] = 'x';
    char out[16] = "";
    auto at = reinterpret_cast<std::uintptr_t>(two);
    CHECK(memory.read(at + static_cast<unsigned>(page) - 4, out, 4));
    CHECK(out[0] == 'x');
    CHECK_FALSE(memory.read(at + static_cast<unsigned>(page) - 4, out, 8));
    CHECK_FALSE(memory.read(at + static_cast<unsigned>(page), out, 1));
    CHECK_FALSE(memory.read(0, out, 8));
    CHECK_FALSE(memory.read(~std::uintptr_t{7}, out, 8));
    std::string big(100000, 'y'), copy(big.size(), ' ');
    CHECK(memory.read(reinterpret_cast<std::uintptr_t>(big.data()), copy.data(), big.size()));
    CHECK(copy == big);
    munmap(two, static_cast<size_t>(page));
  }
  CheckedMemory::deny_vm_read(false);
}

TEST_CASE("a sleeping thread does not change, a running one does") {
  std::atomic<std::uint32_t> tid{0};
  std::atomic<int> phase{0};
  std::thread thread([&] {
    tid.store(kernel_thread_id());
    while (phase.load() == 0) {
    }
    sleep_ms(1500);
    phase.store(2);
    sleep_ms(50);
  });
  while (!tid.load()) sleep_ms(1);
  CHECK(is_own_task(tid.load()));
  TaskState running = task_state(tid.load());
  sleep_ms(200);
  CHECK_FALSE(task_state(tid.load()) == running);
  phase.store(1);
  sleep_ms(300);
  TaskState asleep = task_state(tid.load());
  CHECK(asleep.asleep());
  sleep_ms(200);
  TaskState later = task_state(tid.load());
  if (phase.load() == 1) CHECK(later == asleep);
  thread.join();
  CHECK_FALSE(is_own_task(tid.load()));
  CHECK_FALSE(task_state(tid.load()).asleep());
}
