// What the runtime calls beyond itself, for tests: the wrappers' side of the seam, a flight memory of its own, a GPU.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "core/flight/writer.h"
#include "interpose/runtime/api.h"
#include "interpose/runtime/driver.h"

namespace fakes {

using namespace dshang;

inline bool nccl_was_seen = true;  // what the wrappers say

// Publishes a recorder over fresh memory; takes it away again.
class Recorder {
 public:
  Recorder();
  ~Recorder();
  flight::Writer& writer() { return writer_; }
  flight::Header& header() { return writer_.header(); }

  // A complete call record as the wrappers leave it before the real call; returns its number.
  std::uint64_t call(void* stream, std::uint32_t group = 0);
  std::uint32_t flags(std::uint64_t n) { return writer_.call(n)->flags.load(); }

 private:
  std::unique_ptr<std::uint64_t[]> memory_;
  flight::Writer writer_;
};

// A GPU with streams that do their work when told to.  One at a time; takes the driver's place while it lives.
// Its functions may be called by several threads; all threads share one current context.
class Gpu {
 public:
  Gpu();
  ~Gpu();

  static void* stream(std::uintptr_t n) { return reinterpret_cast<void*>(n); }
  static void* context(std::uintptr_t n) { return reinterpret_cast<void*>(0xc0000 + n); }

  // Lets the oldest `marks` events of a stream happen.
  void advance(void* stream, unsigned marks);

  std::map<void*, void*> context_of;            // stream -> context; others belong to context(0)
  void* current = context(0);                   // of every thread
  std::set<void*> capturing;
  int broken = 0;                               // what every query answers, 0 = honestly
  int record_fails = 0;                         // what every record answers
  bool create_fails = false;
  std::size_t free_bytes = 1000, total_bytes = 4000;
  std::function<void()> while_asked;  // called once the answer to how much is free is fixed
  unsigned created = 0, recorded = 0, queried = 0, relaxed = 0;

 private:
  std::recursive_mutex lock_;
  struct Event {
    void* context;
    bool reached;
  };
  std::map<void*, Event> events_;
  std::map<void*, std::vector<void*>> queue_;
  interpose::driver::Functions functions_;
  static Gpu* one;
  friend struct GpuFunctions;
};

}  // namespace fakes
