#include "interpose/calls/thread.h"

#include <errno.h>
#include <time.h>

#include "core/rank/context.h"

namespace dshang::interpose::calls {
namespace {

std::uint32_t names[kRows];  // written before the flight memory is published

}  // namespace

thread_local constinit Thread this_thread{};
std::atomic<std::uint32_t> wakings{0};

HostErrno::HostErrno() : where_(&errno), value_(errno) {}
HostErrno::~HostErrno() { *where_ = value_; }
void HostErrno::before_real() const { *where_ = value_; }
void HostErrno::after_real() { value_ = *where_; }

std::uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::uint64_t(t.tv_sec) * 1000000000u + std::uint64_t(t.tv_nsec);
}

Thread& known_thread(const flight::Writer& writer) {
  Thread& thread = this_thread;
  std::uint32_t waking = wakings.load(std::memory_order_relaxed);
  if (thread.waking != waking) [[unlikely]] {
    thread.index = rank::thread_index(writer, flight::kThreadCalls);
    thread.entry = thread.index < flight::kThreadEntries ? &writer.thread_entry(thread.index) : nullptr;
    thread.waking = waking;
  }
  return thread;
}

void inside(const flight::Writer& writer, Row row, std::uint64_t since_ns) {
  flight::ThreadEntry* entry = known_thread(writer).entry;
  if (!entry) return;
  entry->inside_since_ns.store(since_ns, std::memory_order_relaxed);
  entry->inside.store(names[index(row)], std::memory_order_release);
}

void outside(const flight::Writer& writer, std::uint64_t now) {
  flight::ThreadEntry* entry = known_thread(writer).entry;
  if (!entry) return;
  entry->inside.store(0, std::memory_order_relaxed);
  entry->last_ns.store(now, std::memory_order_relaxed);
}

void intern_names(const flight::Writer& writer) {
  for (unsigned row = 0; row < kRows; ++row) names[row] = writer.string(row_info::kTable[row].name);
}

}  // namespace dshang::interpose::calls
