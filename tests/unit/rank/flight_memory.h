// A flight memory for a test, and what lies in it.
#pragma once

#include <sys/mman.h>

#include <string>
#include <vector>

#include "core/flight/writer.h"
#include "core/rank/awake.h"

namespace dshang::test {

class FlightMemory {
 public:
  // Wakes the process with it.
  FlightMemory() {
    void* memory = mmap(nullptr, flight::Writer::total_bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const flight::OpInfo op{"all_gather", flight::kOpCollective, 0};
    writer = flight::Writer::format(memory, {}, &op, 1);
    rank::wake(writer);
  }
  ~FlightMemory() {
    rank::fall_asleep();
    munmap(&writer.header(), flight::Writer::total_bytes());
  }
  FlightMemory(const FlightMemory&) = delete;
  FlightMemory& operator=(const FlightMemory&) = delete;

  template <typename T>
  const T* section(flight::Section which) const {
    const char* base = reinterpret_cast<const char*>(&writer.header());
    return reinterpret_cast<const T*>(base + writer.header().sections[static_cast<unsigned>(which)].offset);
  }

  std::string text(std::uint32_t id) const {
    if (!id) return "";
    const flight::StringEntry& entry = section<flight::StringEntry>(flight::Section::kStrings)[id - 1];
    return {section<char>(flight::Section::kArena) + entry.offset, entry.length_plus_one.load() - 1};
  }

  std::uint64_t visits() const { return writer.header().visit_head.load(); }
  const flight::VisitRecord& visit(std::uint64_t n) const {
    return section<flight::VisitRecord>(flight::Section::kVisits)[n];
  }
  const flight::VisitRecord& last_visit() const { return visit(visits() - 1); }

  std::vector<std::string> facts() const {
    std::vector<std::string> found;
    for (std::uint64_t n = 0; n < writer.header().fact_head.load(); ++n) {
      const flight::Fact& fact = section<flight::Fact>(flight::Section::kFacts)[n];
      found.push_back(text(fact.key) + "=" + text(fact.value));
    }
    return found;
  }

  flight::Writer writer;
};

}  // namespace dshang::test
