#include "core/flight/reader.h"

#include <string.h>

#include "core/flight/hash.h"

// The writer fills a slot with plain stores; a reader that meets them half-way notices by the stamp.  The
// thread sanitizer cannot know that, so the copies are not instrumented.
#define DSHANG_RACY __attribute__((no_sanitize("thread"), noinline))

namespace dshang::flight {
namespace {

using Word = std::uint64_t __attribute__((may_alias));

constexpr std::uint32_t kEntryBytes[kSections] = {
    sizeof(OpInfo),      sizeof(CallRecord),  sizeof(VisitRecord),
    sizeof(CommEntry),   sizeof(StringEntry), 1,
    sizeof(SiteEntry),   sizeof(MemoryStep),  sizeof(AllocFailure),
    sizeof(ThreadEntry), sizeof(Fact),        sizeof(ExceptionRecord),
    sizeof(StackRecord),
};

// Beyond it stamps would wrap around to 0; only a corrupt head leads there.
constexpr std::uint64_t kLastRecord = UINT64_MAX / 4;

template <typename T>
DSHANG_RACY void copy_words(Copy<T>* to, const T* from) {
  static_assert(sizeof(T) % sizeof(Word) == 0 && alignof(T) <= sizeof(Word));
  const volatile Word* in = reinterpret_cast<const volatile Word*>(from);
  Word* out = reinterpret_cast<Word*>(to->bytes());
  for (std::size_t i = 0; i < sizeof(T) / sizeof(Word); ++i) out[i] = in[i];
}

DSHANG_RACY void copy_bytes(char* to, const unsigned char* from, std::size_t length) {
  const volatile unsigned char* in = from;
  for (std::size_t i = 0; i < length; ++i) to[i] = static_cast<char>(in[i]);
}

DSHANG_RACY std::uint32_t offset_of(const StringEntry& entry) {
  return *reinterpret_cast<const volatile std::uint32_t*>(&entry.offset);
}

DSHANG_RACY std::uint32_t result_of(const CallRecord& record) {
  return *reinterpret_cast<const volatile std::uint32_t*>(&record.result);
}

// What a stamp says of record n.
SlotState state_of(std::uint64_t stamp, std::uint64_t n, std::uint32_t entries) {
  if (n > kLastRecord) return SlotState::kGone;
  if (stamp == complete_stamp(n)) return SlotState::kComplete;
  if (stamp == writing_stamp(n)) return SlotState::kUnfinished;
  // The slot still holds an earlier lap: record n is claimed, its writer has not come to the stamp.
  if (stamp == 0) return SlotState::kUnfinished;
  std::uint64_t held = (stamp - 1) / 2;
  return held < n && held % entries == n % entries ? SlotState::kUnfinished : SlotState::kGone;
}

}  // namespace

Reader::Reader(const void* memory, std::size_t bytes) {
  const unsigned char* base = static_cast<const unsigned char*>(memory);
  problem_ = check(base, bytes);
  if (!problem_) base_ = base;
}

const char* Reader::check(const unsigned char* base, std::size_t bytes) {
  if (!base || bytes < sizeof(Header)) return "shorter than a flight memory's header";
  if (reinterpret_cast<std::uintptr_t>(base) % alignof(Header)) return "not aligned to 8 bytes";
  Copy<Header> header;
  copy_words(&header, reinterpret_cast<const Header*>(base));
  if (header->magic != kMagic) return "not a flight memory";
  if (header->version != kVersion) return "flight memory of another version of dshang";
  if (header->header_bytes != sizeof(Header)) return "header of an unknown size";
  if (header->total_bytes > bytes) return "cut off: shorter than its header says";
  for (unsigned i = 0; i < kSections; ++i) {
    const SectionInfo& info = header->sections[i];
    if (info.entry_bytes != kEntryBytes[i]) return "section with entries of an unknown size";
    if (info.entries == 0) return "section without entries";
    if (info.bytes != std::uint64_t{info.entries} * info.entry_bytes)
      return "section whose size does not fit its entries";
    if (info.offset % 64 || info.offset < sizeof(Header)) return "section at an impossible place";
    if (info.offset > header->total_bytes || info.bytes > header->total_bytes - info.offset) {
      return "section beyond the end";
    }
    parts_[i] = {base + info.offset, info.entries};
  }
  return nullptr;
}

template <typename T>
const T* Reader::entry(Section which, std::uint64_t index) const {
  const Part& part = parts_[static_cast<unsigned>(which)];
  return index < part.entries ? reinterpret_cast<const T*>(part.base) + index : nullptr;
}

template <typename T>
SlotState Reader::slot(Section which, std::uint64_t n, Copy<T>* out) const {
  const Part& part = parts_[static_cast<unsigned>(which)];
  const T* record = reinterpret_cast<const T*>(part.base) + n % part.entries;
  std::uint64_t before = record->stamp.load(std::memory_order_acquire);
  SlotState state = state_of(before, n, part.entries);
  if (state != SlotState::kComplete) return state;
  copy_words(out, record);
  std::atomic_thread_fence(std::memory_order_acquire);  // the fields before the second look at the stamp
  return record->stamp.load(std::memory_order_relaxed) == before ? state : SlotState::kGone;
}

Ring Reader::ring(Section which, const std::atomic<std::uint64_t>& head) const {
  return {head.load(std::memory_order_acquire), entries(which)};
}

Ring Reader::calls() const { return ring(Section::kCalls, header().call_head); }
Ring Reader::visits() const { return ring(Section::kVisits, header().visit_head); }
Ring Reader::memory_steps() const { return ring(Section::kMemorySteps, header().memory_step_head); }
Ring Reader::alloc_failures() const { return ring(Section::kAllocFailures, header().alloc_failure_head); }
Ring Reader::facts() const { return ring(Section::kFacts, header().fact_head); }
Ring Reader::exceptions() const { return ring(Section::kExceptions, header().exception_head); }
Ring Reader::stacks() const { return ring(Section::kStacks, header().stack_head); }

SlotState Reader::call(std::uint64_t n, Copy<CallRecord>* out) const { return slot(Section::kCalls, n, out); }
SlotState Reader::visit(std::uint64_t n, Copy<VisitRecord>* out) const {
  return slot(Section::kVisits, n, out);
}
SlotState Reader::memory_step(std::uint64_t n, Copy<MemoryStep>* out) const {
  return slot(Section::kMemorySteps, n, out);
}
SlotState Reader::alloc_failure(std::uint64_t n, Copy<AllocFailure>* out) const {
  return slot(Section::kAllocFailures, n, out);
}
SlotState Reader::fact(std::uint64_t n, Copy<Fact>* out) const { return slot(Section::kFacts, n, out); }
SlotState Reader::exception(std::uint64_t n, Copy<ExceptionRecord>* out) const {
  return slot(Section::kExceptions, n, out);
}
SlotState Reader::stack(std::uint64_t n, Copy<StackRecord>* out) const {
  return slot(Section::kStacks, n, out);
}

SlotState Reader::call_progress(std::uint64_t n, CallProgress* out) const {
  const Part& part = parts_[static_cast<unsigned>(Section::kCalls)];
  const CallRecord* record = reinterpret_cast<const CallRecord*>(part.base) + n % part.entries;
  std::uint64_t before = record->stamp.load(std::memory_order_acquire);
  SlotState state = state_of(before, n, part.entries);
  if (state != SlotState::kComplete) return state;
  out->flags = record->flags.load(std::memory_order_acquire);
  out->return_ns = record->return_ns.load(std::memory_order_relaxed);
  out->started_ns = record->started_ns.load(std::memory_order_relaxed);
  out->done_ns = record->done_ns.load(std::memory_order_relaxed);
  out->result = result_of(*record);
  std::atomic_thread_fence(std::memory_order_acquire);
  return record->stamp.load(std::memory_order_relaxed) == before ? state : SlotState::kGone;
}

void Reader::host(char (&text)[sizeof(Header::host) + 1]) const {
  copy_bytes(text, reinterpret_cast<const unsigned char*>(header().host), sizeof(Header::host));
  text[sizeof(Header::host)] = 0;
}

bool Reader::op(std::uint32_t index, Copy<OpInfo>* out) const {
  const OpInfo* found = entry<OpInfo>(Section::kOps, index);
  if (found) copy_words(out, found);
  return found != nullptr;
}

std::uint32_t Reader::comm_count() const {
  std::uint32_t count = header().comm_count.load(std::memory_order_acquire);
  std::uint32_t room = entries(Section::kComms);
  return count < room ? count : room;
}

bool Reader::comm(std::uint32_t index, Copy<CommEntry>* out) const {
  const CommEntry* found = entry<CommEntry>(Section::kComms, index);
  if (!found) return false;
  CommState state = found->state.load(std::memory_order_acquire);
  if (state == CommState::kNone) return false;
  copy_words(out, found);
  // A later state may have been copied before what belongs to it.
  memcpy(out->bytes() + offsetof(CommEntry, state), &state, sizeof state);
  return true;
}

bool Reader::thread(std::uint32_t index, Copy<ThreadEntry>* out) const {
  const ThreadEntry* found = entry<ThreadEntry>(Section::kThreads, index);
  if (found) copy_words(out, found);
  return found != nullptr;
}

SlotState Reader::string(std::uint32_t id, char* text, std::size_t* length) const {
  *length = 0;
  const StringEntry* found = id ? entry<StringEntry>(Section::kStrings, id - 1) : nullptr;
  if (!found) return SlotState::kGone;
  std::uint64_t hash = found->hash.load(std::memory_order_acquire);
  if (!hash) return SlotState::kGone;
  std::uint32_t stored = found->length_plus_one.load(std::memory_order_acquire);
  if (!stored) return SlotState::kUnfinished;
  const Part& arena = parts_[static_cast<unsigned>(Section::kArena)];
  std::uint32_t bytes = stored - 1, offset = offset_of(*found);
  if (bytes > kLongestString || offset > arena.entries || bytes > arena.entries - offset)
    return SlotState::kGone;
  copy_bytes(text, arena.base + offset, bytes);
  std::uint64_t real = fnv1a(text, bytes);
  if ((real ? real : 1) != hash) return SlotState::kGone;
  *length = bytes;
  return SlotState::kComplete;
}

SlotState Reader::site(std::uint32_t id, Copy<SiteEntry>* out, std::uint32_t* frames) const {
  *frames = 0;
  const SiteEntry* found = id ? entry<SiteEntry>(Section::kSites, id - 1) : nullptr;
  if (!found || !found->key.load(std::memory_order_acquire)) return SlotState::kGone;
  std::uint32_t stored = found->frames_plus_one.load(std::memory_order_acquire);
  if (!stored) return SlotState::kUnfinished;
  if (stored - 1 > kSiteFrames) return SlotState::kGone;
  copy_words(out, found);
  *frames = stored - 1;
  return SlotState::kComplete;
}

}  // namespace dshang::flight
