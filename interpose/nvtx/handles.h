// Handles that stand for something dshang looks at: DeepSpeed's domains, and registered strings that name a
// phase.
//
// A tool's handles are noted as it gave them; where there is no tool, own() gives one.  A few of each are
// kept; more are not recognised.  Threads: any; no lock, no allocation.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/rank/ranges.h"

namespace dshang::nvtx {

inline constexpr std::uint32_t kNoDomain = rank::kRangeDomains;

// `value` by handle.
class Handles {
 public:
  // A handle that was given again for something else is forgotten with `value` null.
  void note(const void* handle, const char* value);
  const char* find(const void* handle) const;
  // A handle for `value`: its entry here.  Null = no room.
  const void* own(const char* value);

 private:
  static constexpr unsigned kEntries = 128;
  struct Entry {
    std::atomic<const void*> handle;
    std::atomic<const char*> value;
  };
  Entry entries_[kEntries];
};

extern Handles domains;  // value: the domain's name
extern Handles strings;  // value: the phase

// The default domain is null; kNoDomain for those that are not DeepSpeed's.
std::uint32_t domain_of(const void* handle);

}  // namespace dshang::nvtx
