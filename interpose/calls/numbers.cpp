#include "interpose/calls/numbers.h"

#include "interpose/runtime/log.h"
#include "interpose/symbols/rows.h"

namespace dshang::interpose::calls {
namespace {

struct Counter {
  std::atomic<std::uint64_t> key;  // 0 = free
  std::atomic<std::uint64_t> count;
};

constexpr std::uint32_t kCounters = 1u << 16, kProbes = 256;
Counter counters[kCounters];

// The op stands for the direction of a send or receive.
std::uint64_t key_of(std::uint32_t comm, std::uint8_t op, std::int32_t peer) {
  return 1ull << 63 | std::uint64_t{comm} << 40 | std::uint64_t{op} << 32 | static_cast<std::uint32_t>(peer);
}

Counter* counter_of(std::uint64_t key) {
  std::uint32_t at = static_cast<std::uint32_t>((key * 0x9e3779b97f4a7c15ull) >> 48);
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    Counter& counter = counters[(at + probe) % kCounters];
    std::uint64_t found = counter.key.load(std::memory_order_relaxed);
    if (found == key) return &counter;
    if (found == 0 && counter.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) return &counter;
    if (found == key) return &counter;
  }
  DSHANG_LOG_ONCE("too many pairs of ranks send to each other; the calls of the others are not numbered");
  return nullptr;
}

std::atomic<std::uint64_t>* count_of(const flight::Writer& writer, std::uint32_t comm, std::uint8_t op,
                                     std::int32_t peer) {
  if (comm == kNoComm) return nullptr;
  std::uint32_t traits = kOpTable.ops[op].traits;
  if (traits & flight::kOpCollective) return &writer.comm(comm).calls;
  if (traits & flight::kOpOneSided) return nullptr;
  Counter* counter = counter_of(key_of(comm, op, traits & flight::kOpLifeCycle ? 0 : peer));
  return counter ? &counter->count : nullptr;
}

}  // namespace

std::uint64_t take_number(const flight::Writer& writer, std::uint32_t comm, std::uint8_t op, std::int32_t peer) {
  std::atomic<std::uint64_t>* count = count_of(writer, comm, op, peer);
  if (!count) return 0;
  // Not fetch_add: a communicator is used by one thread at a time, and a plain store costs a tenth.
  std::uint64_t number = count->load(std::memory_order_relaxed) + 1;
  count->store(number, std::memory_order_relaxed);
  return number;
}

void give_back(const flight::Writer& writer, std::uint32_t comm, std::uint8_t op, std::int32_t peer) {
  std::atomic<std::uint64_t>* count = count_of(writer, comm, op, peer);
  if (count) count->store(count->load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

void forget_numbers() {
  for (Counter& counter : counters) {
    if (!counter.key.load(std::memory_order_relaxed)) continue;  // untouched pages stay untouched
    counter.count.store(0, std::memory_order_relaxed);
    counter.key.store(0, std::memory_order_relaxed);
  }
}

}  // namespace dshang::interpose::calls
