// Stands for interpose/runtime/ in these tests: keeps what the wrappers tell it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/flight/writer.h"
#include "interpose/runtime/api.h"

namespace runtime_double {

using namespace dshang;

struct Placed {
  interpose::runtime::CallSpan span;
  std::string what;  // start, end, cancel
  interpose::runtime::Mark mark;
};

struct MemoryNote {
  std::string what;  // allocated, freed, restored, failed
  flight::MemoryKind kind;
  std::uintptr_t address;
  std::size_t bytes;
  int changing;  // State::changing at that moment
};

struct State {
  std::vector<Placed> marks;
  std::vector<MemoryNote> memory;
  int changing = 0;  // calls under way that take or give back device memory
  int timed = 0;  // calls that took or gave back memory, with their times
  std::vector<interpose::runtime::WakeReason> wakes;
  std::set<void*> capturing;
  bool wakes_up = true;
  int graph_launches = 0;
  std::uint64_t free_bytes = 1000;
  const interpose::runtime::Failure* failure = nullptr;  // the order to fail
};
extern State state;

// A process that sleeps: no flight memory, nothing remembered.
void fall_asleep();
// What wake() does for a communicator.
void wake_up();

}  // namespace runtime_double
