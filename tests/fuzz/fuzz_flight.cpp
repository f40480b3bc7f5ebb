// Any bytes taken for flight memory: reading stays inside, loading keeps its promises, and the readable form
// of what was loaded leads back to itself.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "core/flight/hash.h"
#include "core/flight/reader.h"
#include "core/job/dump.h"
#include "core/job/load.h"
#include "core/job/parse.h"
#include "tests/fuzz/seeds.h"

using namespace dshang;

namespace {

[[noreturn]] void fail(const char* what, const std::string& more = "") {
  std::fprintf(stderr, "fuzz_flight: %s\n%s\n", what, more.c_str());
  std::abort();
}

void check(const job::RankRecords& records) {
  for (std::uint64_t n = records.calls.first(); n < records.calls.end(); ++n) {
    const job::Call& call = records.calls.at(n);
    if (!call.torn && (call.op >= records.ops.size() || call.comm >= records.comms.size()))
      fail("a call points nowhere");
  }
}

void check_text(const job::RankRecords& records, const job::Names& names) {
  std::string text = job::dump(records, names);
  job::Names again;
  job::Parsed parsed = job::parse(text, again);
  if (!parsed.error.empty()) fail("the dump cannot be parsed", parsed.error + "\n" + text);
  if (parsed.ranks.size() != 1) fail("the dump is not one rank", text);
  std::string second = job::dump(parsed.ranks[0], again);
  if (second != text) fail("the dump of the parsed dump differs", text + "\n----\n" + second);
}

// Freed with the alignment that a mapping would have; exactly as long as the input, so that a sanitizer sees
// its end.
struct Free {
  void operator()(unsigned char* memory) const { ::operator delete (memory, std::align_val_t{64}); }
};

// ---- a small valid flight memory ----

constexpr std::uint32_t kEntries[flight::kSections] = {4, 16, 16, 4, 32, 1024, 8, 4, 4, 4, 4, 4, 4};
constexpr std::uint32_t kBytes[flight::kSections] = {
    sizeof(flight::OpInfo),      sizeof(flight::CallRecord),  sizeof(flight::VisitRecord),
    sizeof(flight::CommEntry),   sizeof(flight::StringEntry), 1,
    sizeof(flight::SiteEntry),   sizeof(flight::MemoryStep),  sizeof(flight::AllocFailure),
    sizeof(flight::ThreadEntry), sizeof(flight::Fact),        sizeof(flight::ExceptionRecord),
    sizeof(flight::StackRecord)};

class SmallImage {
 public:
  SmallImage() {
    std::uint64_t offset = (sizeof(flight::Header) + 63) / 64 * 64;
    flight::Header plan{};
    for (unsigned i = 0; i < flight::kSections; ++i) {
      plan.sections[i] = {offset, std::uint64_t{kEntries[i]} * kBytes[i], kBytes[i], kEntries[i]};
      offset = (offset + plan.sections[i].bytes + 63) / 64 * 64;
    }
    words_.reset(new std::uint64_t[offset / 8]());
    size_ = offset;
    flight::Header& h = header();
    std::memcpy(h.sections, plan.sections, sizeof h.sections);
    h.magic = flight::kMagic;
    h.version = flight::kVersion;
    h.header_bytes = sizeof(flight::Header);
    h.total_bytes = offset;
    h.rank = 1;
    h.world_size = 2;
    h.start_ns = 1000000;
    std::strcpy(h.host, "node-1");
    fill();
  }
  std::string bytes() const { return std::string(reinterpret_cast<const char*>(words_.get()), size_); }

 private:
  flight::Header& header() { return *reinterpret_cast<flight::Header*>(words_.get()); }
  template <typename T>
  T* section(flight::Section which) {
    auto* base = reinterpret_cast<unsigned char*>(words_.get());
    return reinterpret_cast<T*>(base + header().sections[static_cast<unsigned>(which)].offset);
  }
  std::uint32_t string(const char* text) {
    std::uint32_t length = static_cast<std::uint32_t>(std::strlen(text));
    flight::StringEntry& entry = section<flight::StringEntry>(flight::Section::kStrings)[strings_];
    entry.offset = header().arena_used.fetch_add(length);
    std::memcpy(section<char>(flight::Section::kArena) + entry.offset, text, length);
    entry.hash.store(flight::fnv1a(text, length));
    entry.length_plus_one.store(length + 1);
    return ++strings_;
  }

  void fill() {
    using namespace flight;
    OpInfo ops[] = {{"all_gather", kOpCollective, 0},
                    {"all_reduce", kOpCollective | kOpReduces, 0},
                    {"send", kOpSend, 0}};
    std::memcpy(section<OpInfo>(Section::kOps), ops, sizeof ops);
    std::uint32_t module = string("layers.0"), phase = string("forward"), file = string("/p/train.py"),
                  name = string("main");
    SiteEntry& site = section<SiteEntry>(Section::kSites)[2];
    site.key.store(77);
    site.frames[0] = {file, name, 10};
    site.frames[1] = {file, 0, 20};
    site.frames_plus_one.store(3);
    CommEntry& comm = section<CommEntry>(Section::kComms)[0];
    comm.id = 5;
    comm.size = 2;
    comm.state.store(CommState::kReady);
    header().comm_count.store(1);
    auto* calls = section<CallRecord>(Section::kCalls);
    for (std::uint64_t n = 4; n < 20; ++n) {
      CallRecord& call = calls[n % 16];
      call.number = n + 1;
      call.count = 100 * n;
      call.enter_ns = 1000000 + n;
      call.visits_before = n;
      call.site = n % 3;
      call.module = module;
      call.phase = phase;
      call.op = static_cast<std::uint8_t>(n % 3);
      call.flags.store(static_cast<std::uint32_t>(n * 37 % 1024));
      call.stamp.store(complete_stamp(n));
    }
    header().call_head.store(20);
    auto* visits = section<VisitRecord>(Section::kVisits);
    for (std::uint64_t n = 0; n < 14; ++n) {
      visits[n].kind = static_cast<VisitKind>(n % 11);
      visits[n].calls_before = n;
      visits[n].module = module;
      visits[n].phase = phase;
      visits[n].site = 3;
      visits[n].time_ns = 1000000 + 2 * n;
      visits[n].stamp.store(complete_stamp(n));
    }
    header().visit_head.store(15);
    auto* facts = section<Fact>(Section::kFacts);
    facts[0].time_ns = 5;
    facts[0].key = string("env.DSHANG_SITE_SKIP");
    facts[0].value = string("train.py");
    facts[0].stamp.store(complete_stamp(0));
    header().fact_head.store(1);
    auto& exception = section<ExceptionRecord>(Section::kExceptions)[0];
    exception.type = string("ValueError");
    exception.message = string("a \"b\"\n\xff|");
    exception.site = 3;
    exception.stamp.store(complete_stamp(0));
    header().exception_head.store(1);
    auto& stack = section<StackRecord>(Section::kStacks)[0];
    stack.frame_count = 1;
    stack.frames[0] = {file, name, 3};
    stack.stamp.store(complete_stamp(0));
    header().stack_head.store(1);
    section<AllocFailure>(Section::kAllocFailures)[0].stamp.store(complete_stamp(0));
    header().alloc_failure_head.store(1);
    section<MemoryStep>(Section::kMemorySteps)[0].stamp.store(complete_stamp(0));
    header().memory_step_head.store(1);
    section<ThreadEntry>(Section::kThreads)[0].tid.store(100);
  }

  std::unique_ptr<std::uint64_t[]> words_;
  std::size_t size_ = 0;
  std::uint32_t strings_ = 0;
};

}  // namespace

std::vector<std::string> fuzz_seeds() { return {SmallImage().bytes()}; }
std::vector<std::string> fuzz_words() { return {std::string(64, '\0'), "DSHANGFM", "\n"}; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::unique_ptr<unsigned char, Free> memory(
      static_cast<unsigned char*>(::operator new (size, std::align_val_t{64})));
  if (size) std::memcpy(memory.get(), data, size);
  flight::Reader reader(memory.get(), size);
  job::Names names;
  job::RankRecords records;
  job::LoadState state;
  job::update(records, reader, names, state);
  check(records);
  if (!reader) return 0;
  check_text(records, names);
  // The process goes on writing, anywhere.
  for (std::size_t i = 0; i < size; i += 1 + size / 200)
    memory.get()[i] = static_cast<unsigned char>(data[size - 1 - i] + i);
  job::update(records, reader, names, state);
  job::update(records, reader, names, state);
  check(records);
  check_text(records, names);
  return 0;
}
