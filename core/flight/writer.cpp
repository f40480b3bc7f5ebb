#include "core/flight/writer.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/flight/hash.h"

namespace dshang::flight {
namespace {

struct Plan {
  std::uint32_t entry_bytes, entries;
};

constexpr Plan kPlan[kSections] = {
    {sizeof(OpInfo), kOpEntries},
    {sizeof(CallRecord), kCallEntries},
    {sizeof(VisitRecord), kVisitEntries},
    {sizeof(CommEntry), kCommEntries},
    {sizeof(StringEntry), kStringEntries},
    {1, kArenaBytes},
    {sizeof(SiteEntry), kSiteEntries},
    {sizeof(MemoryStep), kMemoryStepEntries},
    {sizeof(AllocFailure), kAllocFailureEntries},
    {sizeof(ThreadEntry), kThreadEntries},
    {sizeof(Fact), kFactEntries},
    {sizeof(ExceptionRecord), kExceptionEntries},
    {sizeof(StackRecord), kStackEntries},
};

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

constexpr std::uint64_t offset_of(unsigned section) {
  std::uint64_t at = up(sizeof(Header), kPage);
  for (unsigned i = 0; i < section; ++i) at = up(at + std::uint64_t{kPlan[i].entry_bytes} * kPlan[i].entries, kPage);
  return at;
}

constexpr std::uint64_t kTotal = offset_of(kSections);
constexpr std::size_t kLongestString = 4096;
constexpr unsigned kProbes = 64;

std::uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::uint64_t(t.tv_sec) * 1000000000u + std::uint64_t(t.tv_nsec);
}

// Field 22 of /proc/self/stat; the command name before it may hold spaces and brackets.
std::uint64_t own_start_ticks() {
  int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  char* at = strrchr(text, ')');
  if (!at) return 0;
  for (int field = 2; field < 22 && at; ++field) {
    at = strchr(at + 1, ' ');
  }
  std::uint64_t ticks = 0;
  for (at = at ? at + 1 : nullptr; at && *at >= '0' && *at <= '9'; ++at) ticks = ticks * 10 + std::uint64_t(*at - '0');
  return ticks;
}

}  // namespace

std::size_t Writer::total_bytes() { return kTotal; }

Writer::Writer(void* memory) : base_(static_cast<unsigned char*>(memory)) {}

Writer Writer::format(void* memory, const Identity& identity, const OpInfo* ops, std::uint32_t op_count) {
  Writer writer(memory);
  Header& h = writer.header();
  h.version = kVersion;
  h.header_bytes = sizeof(Header);
  h.total_bytes = kTotal;
  h.pid = getpid();
  h.rank = identity.rank;
  h.local_rank = identity.local_rank;
  h.world_size = identity.world_size;
  h.restart_count = identity.restart_count;
  h.provisional = 1;
  h.pid_start_ticks = own_start_ticks();
  h.job = identity.job;
  h.net_namespace = identity.net_namespace;
  h.pid_namespace = identity.pid_namespace;
  h.start_ns = identity.start_ns;
  h.start_real_ns = identity.start_real_ns;
  h.step.store(kNoStep, std::memory_order_relaxed);
  gethostname(h.host, sizeof h.host - 1);
  for (unsigned i = 0; i < kSections; ++i) {
    std::uint64_t bytes = std::uint64_t{kPlan[i].entry_bytes} * kPlan[i].entries;
    h.sections[i] = {offset_of(i), bytes, kPlan[i].entry_bytes, kPlan[i].entries};
  }
  std::uint32_t kept = op_count < kOpEntries ? op_count : kOpEntries;
  memcpy(writer.section<OpInfo>(Section::kOps), ops, kept * sizeof(OpInfo));
  std::atomic_thread_fence(std::memory_order_release);
  h.magic = kMagic;
  return writer;
}

template <typename T>
T* Writer::section(Section which) const {
  return reinterpret_cast<T*>(base_ + offset_of(static_cast<unsigned>(which)));
}

template <typename T>
Open<T> Writer::open(Section which, std::atomic<std::uint64_t>& head, std::uint32_t entries) const {
  std::uint64_t n = head.fetch_add(1, std::memory_order_acq_rel);
  T* record = section<T>(which) + n % entries;
  record->stamp.store(writing_stamp(n), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // the stamp before the fields
  memset(reinterpret_cast<unsigned char*>(record) + sizeof(Stamp), 0, sizeof(T) - sizeof(Stamp));
  return {record, n};
}

Open<CallRecord> Writer::open_call() const { return open<CallRecord>(Section::kCalls, header().call_head, kCallEntries); }
Open<VisitRecord> Writer::open_visit() const {
  return open<VisitRecord>(Section::kVisits, header().visit_head, kVisitEntries);
}
Open<MemoryStep> Writer::open_memory_step() const {
  return open<MemoryStep>(Section::kMemorySteps, header().memory_step_head, kMemoryStepEntries);
}
Open<AllocFailure> Writer::open_alloc_failure() const {
  return open<AllocFailure>(Section::kAllocFailures, header().alloc_failure_head, kAllocFailureEntries);
}
Open<ExceptionRecord> Writer::open_exception() const {
  return open<ExceptionRecord>(Section::kExceptions, header().exception_head, kExceptionEntries);
}
Open<StackRecord> Writer::open_stack() const {
  return open<StackRecord>(Section::kStacks, header().stack_head, kStackEntries);
}

CallRecord* Writer::call(std::uint64_t n) const {
  CallRecord* record = section<CallRecord>(Section::kCalls) + n % kCallEntries;
  return record->stamp.load(std::memory_order_acquire) == complete_stamp(n) ? record : nullptr;
}

std::uint32_t Writer::string(const char* text) const { return text ? string(text, strlen(text)) : 0; }

std::uint32_t Writer::string(const char* text, std::size_t length) const {
  if (!text || !length) return 0;
  if (length > kLongestString) length = kLongestString;
  std::uint64_t hash = fnv1a(text, length);
  if (!hash) hash = 1;
  StringEntry* table = section<StringEntry>(Section::kStrings);
  char* arena = section<char>(Section::kArena);
  for (unsigned probe = 0; probe < kProbes; ++probe) {
    std::uint32_t at = static_cast<std::uint32_t>((hash + probe) % kStringEntries);
    StringEntry& entry = table[at];
    std::uint64_t found = entry.hash.load(std::memory_order_acquire);
    if (found == 0 && entry.hash.compare_exchange_strong(found, hash, std::memory_order_acq_rel)) {
      std::uint32_t offset = header().arena_used.fetch_add(static_cast<std::uint32_t>(length), std::memory_order_relaxed);
      if (offset + length > kArenaBytes) {
        header().arena_used.fetch_sub(static_cast<std::uint32_t>(length), std::memory_order_relaxed);
        header().dropped_strings.fetch_add(1, std::memory_order_relaxed);
        return at + 1;  // a string without bytes reads as unknown
      }
      memcpy(arena + offset, text, length);
      entry.offset = offset;
      entry.length_plus_one.store(static_cast<std::uint32_t>(length) + 1, std::memory_order_release);
      return at + 1;
    }
    if (found != hash) continue;
    // Equal 64-bit hashes: compare the bytes where they are there already; a string that another thread is writing
    // at this moment is taken to be equal.
    std::uint32_t stored = entry.length_plus_one.load(std::memory_order_acquire);
    if (stored == 0 || (stored - 1 == length && memcmp(arena + entry.offset, text, length) == 0)) return at + 1;
  }
  header().dropped_strings.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

std::uint32_t Writer::site(std::uint64_t key, bool* is_new) const {
  *is_new = false;
  if (!key) return 0;
  SiteEntry* table = section<SiteEntry>(Section::kSites);
  for (unsigned probe = 0; probe < kProbes; ++probe) {
    std::uint32_t at = static_cast<std::uint32_t>((key + probe) % kSiteEntries);
    std::uint64_t found = table[at].key.load(std::memory_order_acquire);
    if (found == key) return at + 1;
    if (found == 0 && table[at].key.compare_exchange_strong(found, key, std::memory_order_acq_rel)) {
      *is_new = true;
      return at + 1;
    }
    if (found == key) return at + 1;
  }
  header().dropped_sites.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

SiteEntry& Writer::site_entry(std::uint32_t id) const { return section<SiteEntry>(Section::kSites)[id - 1]; }

void Writer::resolve_site(std::uint32_t id, std::uint32_t frames) const {
  site_entry(id).frames_plus_one.store(frames + 1, std::memory_order_release);
}

CommEntry* Writer::open_comm(std::uint32_t* index) const {
  std::uint32_t at = header().comm_count.fetch_add(1, std::memory_order_acq_rel);
  if (at >= kCommEntries) {
    header().comm_count.fetch_sub(1, std::memory_order_acq_rel);
    header().dropped_comms.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  CommEntry& entry = comm(at);
  entry.rank = -1;
  entry.begin_ns = now_ns();
  entry.free_before = entry.free_after = kUnknownBytes;
  *index = at;
  return &entry;
}

CommEntry& Writer::comm(std::uint32_t index) const { return section<CommEntry>(Section::kComms)[index]; }

std::uint32_t Writer::thread(std::uint32_t tid) const {
  ThreadEntry* table = section<ThreadEntry>(Section::kThreads);
  for (std::uint32_t i = 0; i < kThreadEntries; ++i) {
    std::uint32_t found = table[i].tid.load(std::memory_order_acquire);
    if (found == tid) return i;
    if (found == 0 && table[i].tid.compare_exchange_strong(found, tid, std::memory_order_acq_rel)) return i;
  }
  header().dropped_threads.fetch_add(1, std::memory_order_relaxed);
  return kThreadEntries;
}

ThreadEntry& Writer::thread_entry(std::uint32_t index) const { return section<ThreadEntry>(Section::kThreads)[index]; }

void Writer::fact(const char* key, const char* value) const { fact(string(key), string(value)); }

void Writer::fact(std::uint32_t key, std::uint32_t value) const {
  auto record = open<Fact>(Section::kFacts, header().fact_head, kFactEntries);
  record->time_ns = now_ns();
  record->key = key;
  record->value = value;
  record.complete();
}

void Writer::ending(EndingKind kind, std::int32_t code) const {
  Ending& ending = header().ending;
  if (ending.kind.load(std::memory_order_relaxed) != EndingKind::kNone) return;
  ending.code = code;
  ending.time_ns = now_ns();
  ending.tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  ending.kind.store(kind, std::memory_order_release);
}

}  // namespace dshang::flight
