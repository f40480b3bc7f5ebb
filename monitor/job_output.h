// The job's stderr, for the monitor's few words.
//
// Every rank hands over a copy of its stderr; a copy is closed when its rank is gone, so that whoever reads
// the other end sees the job end in time.  Words go to the copy of the lowest rank that is still there.
//
// Threads: one at a time.  A write never blocks for long: a reader that does not read loses the words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "monitor/descriptor.h"

namespace dshang::monitor {

// One write(2) of so many bytes is not mixed with what others write to the same pipe (PIPE_BUF).
inline constexpr std::size_t kLongestBlock = 4096;

class JobOutput {
 public:
  // `key` tells processes apart.  A descriptor that cannot be written is dropped.
  void add(std::uint64_t key, std::int32_t rank, Descriptor output);
  void remove(std::uint64_t key);
  void close_all() { outputs_.clear(); }
  bool any() const { return !outputs_.empty(); }

  // "dshang: <line>\n".
  bool say(std::string_view line) const;
  // The text as it is, cut to kLongestBlock bytes.  False when nobody took it.
  bool write(std::string_view text) const;

 private:
  struct Output {
    std::int32_t rank;
    Descriptor descriptor;
  };
  std::map<std::uint64_t, Output> outputs_;
};

}  // namespace dshang::monitor
