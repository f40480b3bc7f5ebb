// The table with which a dry run ends, and what torch's message says of its allocator.
#include "core/job/model.h"
#include "detectors/alloc_message.h"
#include "detectors/memory_table.h"
#include "made.h"

using namespace dshang;
using namespace dshang::detect;
using dshang::job::made;
using dshang::job::rank;

namespace {

constexpr const char* kGiB = "1073741824";

std::string gib(int n) { return std::to_string(n * std::stoll(kGiB)); }

std::string step(int number, int allocated, int other) {
  int reserved = allocated + 1;
  return "memory step=" + std::to_string(number) + " device=" + gib(reserved) +
         " reserved_peak=" + gib(reserved) + " allocated_peak=" + gib(allocated) +
         " device_free=" + gib(16 - reserved - other) + " device_total=" + gib(16) +
         " phase_a=forward allocated_a=" + gib(allocated - 2) +
         " phase_b=backward allocated_b=" + gib(allocated) + "\n";
}

bool holds(const std::string& line, std::initializer_list<const char*> parts) {
  std::size_t at = 0;
  for (const char* part : parts) {
    at = line.find(part, at);
    if (at == line.npos) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("each rank's need is the highest of its steps and what others took; equal ranks share a line") {
  auto job = made(rank(0, 3, step(0, 8, 1) + step(1, 10, 1)) + rank(1, 3, step(0, 8, 1) + step(1, 10, 1)) +
                  rank(2, 3, step(0, 14, 1)));
  auto lines = memory_table(job::make_view(*job), "some-gpu");
  REQUIRE(lines.size() == 4);
  CHECK(holds(lines[0], {"some-gpu", "16 GiB"}));
  CHECK(holds(lines[2], {"0, 1", "11 GiB", "10 GiB", "1 GiB", "backward, step 1", "yes, 5 GiB left"}));
  CHECK(holds(lines[3], {"2 ", "15 GiB", "14 GiB", "1 GiB", "backward, step 0", "yes, 1 GiB left"}));
}

TEST_CASE("a request that failed says that it does not fit; one that was tried again does not") {
  std::string failed = "alloc_failed " + gib(4) + " free=" + gib(1) + " total=" + gib(16) +
                       " live=" + gib(15) + " result=2 phase=backward step=1";
  auto job =
      made(rank(0, 2, step(0, 8, 1) + failed + "\n") + rank(1, 2, step(0, 8, 1) + failed + " retried=yes\n"));
  auto lines = memory_table(job::make_view(*job), "some-gpu");
  REQUIRE(lines.size() == 4);
  CHECK(holds(lines[2], {"0 ", "> 19 GiB", "backward, step 1", "NO: 4 GiB more were asked for"}));
  CHECK(holds(lines[3], {"1 ", "9 GiB", "yes, 7 GiB left"}));
}

TEST_CASE("what a rank did without is no reason not to fit") {
  std::string refused = "alloc_failed " + gib(4) + " free=" + gib(1) + " total=" + gib(16) + " live=" + gib(15) +
                        " result=2 phase=forward step=1\n";
  auto job = made(rank(0, 1, step(0, 8, 1) + refused + "visit step 1\ncall all_reduce 1 f32 sum\n" + step(1, 14, 1) + step(2, 9, 1)));
  auto lines = memory_table(job::make_view(*job), "some-gpu");
  REQUIRE(lines.size() == 3);
  CHECK(holds(lines[2], {"0 ", "10 GiB", "backward, step 2", "yes, 6 GiB left; 4 GiB more were refused in step 1, and it went on"}));
}

TEST_CASE("no cell runs into the next one") {
  auto job = made(rank(0, 2, "memory step=- device=" + gib(9) + " allocated_peak=" + gib(9) + " device_free=" + gib(6) +
                                 " device_total=" + gib(16) + " phase_a=init allocated_a=" + gib(9) + "\n") +
                  rank(1, 2, step(0, 8, 1)));
  auto lines = memory_table(job::make_view(*job), "some-gpu");
  REQUIRE(lines.size() == 4);
  CHECK(holds(lines[2], {"init, before the first step  yes, "}));
  for (std::size_t i = 2; i < 4; ++i) CHECK(lines[i].find("yes") == lines[1].find("fits"));
}

TEST_CASE("without a step there is no table") {
  auto job = made(rank(0, 1, "call all_reduce 1 f32 sum\n"));
  CHECK(memory_table(job::make_view(*job), "some-gpu").empty());
}

TEST_CASE("torch's messages of all versions are read") {
  auto now = allocator_state_in(
      "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which "
      "9.00 GiB is free. "
      "Of the allocated memory 50.50 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but "
      "unallocated.");
  REQUIRE(now);
  CHECK(now->allocated == 50 * 1073741824ull + 536870912);
  CHECK(now->unused() == 536870912);
  auto before = allocator_state_in(
      "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.35 GiB total capacity; 60.00 GiB already "
      "allocated; 1.00 "
      "GiB free; 70.00 GiB reserved in total by PyTorch)");
  REQUIRE(before);
  CHECK(before->unused() == 10 * 1073741824ull);
  CHECK_FALSE(allocator_state_in("CUDA error: an illegal memory access was encountered"));
  CHECK_FALSE(allocator_state_in(" is allocated by PyTorch"));
}
