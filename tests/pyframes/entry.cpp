// What the programs of this folder call through ctypes: core/rank on a flight memory of its own.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/rank/awake.h"
#include "core/rank/base_libc.h"
#include "core/rank/context.h"
#include "core/rank/memory_read.h"
#include "core/rank/pyframes.h"
#include "core/rank/python_state.h"
#include "core/rank/stacks.h"

using namespace dshang;
using flight::Section;
using flight::Writer;

namespace {

Writer writer;
constexpr size_t kText = 1 << 20;
thread_local char* text;
thread_local size_t used;

void begin_text() {
  if (!text) text = static_cast<char*>(malloc(kText));
  used = 0;
  text[0] = 0;
}

template <typename T>
T* section(Section which) {
  char* base = reinterpret_cast<char*>(&writer.header());
  return reinterpret_cast<T*>(base + writer.header().sections[static_cast<unsigned>(which)].offset);
}

[[gnu::format(printf, 1, 2)]] void add(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  used += static_cast<size_t>(vsnprintf(text + used, kText - used, format, arguments));
  va_end(arguments);
  if (used >= kText) used = kText - 1;
}

void add_string(uint32_t id) {
  if (!id) return;
  const flight::StringEntry& entry = section<flight::StringEntry>(Section::kStrings)[id - 1];
  uint32_t length = entry.length_plus_one.load();
  if (length) add("%.*s", int(length - 1), section<char>(Section::kArena) + entry.offset);
}

void add_frames(const flight::Frame* frames, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    add_string(frames[i].file);
    add("\t");
    add_string(frames[i].function);
    add("\t%d\n", frames[i].line);
  }
}

std::atomic<bool> stacks_written{false};

void* stacks_later(void* argument) {
  uintptr_t number = reinterpret_cast<uintptr_t>(argument);
  rank::sleep_ms(static_cast<unsigned>(number >> 32));
  rank::write_stacks(writer, static_cast<uint32_t>(number));
  stacks_written.store(true);
  return nullptr;
}

}  // namespace

extern "C" {

#define API __attribute__((visibility("default")))

API int start() {
  void* memory =
      mmap(nullptr, Writer::total_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  flight::OpInfo op{"all_gather", flight::kOpCollective, 0};
  writer = Writer::format(memory, {}, &op, 1);
  rank::wake(writer);
  return 0;
}

API void asleep() { rank::fall_asleep(); }
API void close_python() { rank::python_closes(); }

API uint32_t site() { return rank::call_site(writer); }

// "file<TAB>function<TAB>line" for each frame, innermost first.
API const char* site_text(uint32_t id) {
  begin_text();
  if (!id) return text;
  const flight::SiteEntry& entry = writer.site_entry(id);
  uint32_t frames = entry.frames_plus_one.load();
  if (frames) add_frames(entry.frames, frames - 1);
  return text;
}

API uint32_t site_truncated(uint32_t id) { return writer.site_entry(id).truncated; }

API double bench(int rounds) {
  uint64_t begin = rank::now_ns();
  uint32_t sum = 0;
  for (int i = 0; i < rounds; ++i) sum += rank::call_site(writer);
  uint64_t end = rank::now_ns();
  return sum ? double(end - begin) / rounds : -1;
}

API int arm() { return rank::arm_python(writer); }
API int python_state() { return static_cast<int>(writer.header().python.load()); }
API void deny_vm_read(int deny) { rank::CheckedMemory::deny_vm_read(deny != 0); }
API uint32_t own_thread() { return rank::kernel_thread_id(); }

API int stacks(uint32_t request) { return static_cast<int>(rank::write_stacks(writer, request)); }

API int stacks_after(unsigned ms, uint32_t request) {
  return rank::start_thread(stacks_later, reinterpret_cast<void*>(uintptr_t{ms} << 32 | request));
}

API void wait_ms(unsigned ms) { rank::sleep_ms(ms); }

// Until stacks were written (at most 30 s), asleep or running.
API void wait_for_stacks(int spin) {
  uint64_t end = rank::now_ns() + 30000000000ull;
  while (!stacks_written.load() && rank::now_ns() < end) {
    if (!spin) rank::sleep_ms(400);
  }
}

// For each stack: "request tid source count truncated", then its frames, then an empty line.
API const char* stacks_text() {
  begin_text();
  for (uint64_t n = 0; n < writer.header().stack_head.load(); ++n) {
    const flight::StackRecord& record =
        section<flight::StackRecord>(Section::kStacks)[n % flight::kStackEntries];
    if (record.stamp.load() != flight::complete_stamp(n)) continue;
    add("%u %u %u %u %u\n", record.request, record.tid, unsigned(record.source), record.frame_count,
        record.truncated);
    add_frames(record.frames, record.frame_count);
    add("\n");
  }
  return text;
}

// One line a visit: kind, step, micro, training, params, then phase, module, detail and innermost site frame.
API const char* visits_text() {
  begin_text();
  for (uint64_t n = 0; n < writer.header().visit_head.load(); ++n) {
    const flight::VisitRecord& visit =
        section<flight::VisitRecord>(Section::kVisits)[n % flight::kVisitEntries];
    add("%u\t%lld\t%u\t%u\t%llu\t", unsigned(visit.kind), static_cast<long long>(visit.step), visit.micro,
        unsigned(visit.training), static_cast<unsigned long long>(visit.params));
    add_string(visit.phase);
    add("\t");
    add_string(visit.module);
    add("\t");
    add_string(visit.detail);
    add("\t");
    if (visit.site)
      add_frames(writer.site_entry(visit.site).frames, 1);
    else
      add("\t\t0\n");
  }
  return text;
}

API const char* facts_text() {
  begin_text();
  for (uint64_t n = 0; n < writer.header().fact_head.load(); ++n) {
    const flight::Fact& fact = section<flight::Fact>(Section::kFacts)[n % flight::kFactEntries];
    add_string(fact.key);
    add("=");
    add_string(fact.value);
    add("\n");
  }
  return text;
}

API const char* exceptions_text() {
  begin_text();
  for (uint64_t n = 0; n < writer.header().exception_head.load(); ++n) {
    const flight::ExceptionRecord& e = section<flight::ExceptionRecord>(Section::kExceptions)[n];
    add_string(e.type);
    add("\t");
    add_string(e.message);
    add("\t");
    if (e.site) add_frames(writer.site_entry(e.site).frames, 1);
  }
  return text;
}

}  // extern "C"
