// The environment as it was when the process woke: the facts recorded of it, and what a monitor is started
// with.
//
// Copied once on the waking thread: a helper thread that walks `environ` races with the host's setenv().
// The copy is never freed.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"

namespace dshang::interpose {

class Environment {
 public:
  // Copies `environ`, without LD_PRELOAD.  False = no memory; the object is then empty.
  bool copy_now();

  char* const* entries() const { return entries_; }  // null-terminated
  const char* find(const char* name) const;          // null = not set

  // Facts "env.<NAME>": every DSHANG_*, NCCL_*, TORCH_NCCL_*, and the launcher's and allocator's variables.
  // Names that look like secrets are left out.
  void record(const flight::Writer& writer) const;

 private:
  char** entries_ = nullptr;
};

// The process's place in its job, from `environ` and /proc as they are now.
flight::Identity identity_of_this_process();

}  // namespace dshang::interpose
