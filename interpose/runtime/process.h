// The process's own state: asleep, waking, awake.  What the wrappers call is in api.h.
#pragma once

#include "interpose/runtime/environment.h"
#include "interpose/runtime/flight_memory.h"

namespace dshang::interpose::process {

// Set once the process is awake; valid until it forks (in the child).
struct Awake {
  FlightMemory memory;
  Environment environment;
  flight::Identity identity;
  int owner = 0;  // pid that owns the flight memory
};

const Awake& awake();

// Whether the calling process is the one that woke: false in children of fork and vfork, also before any
// handler ran.
// Async-signal-safe.
bool is_owner();

}  // namespace dshang::interpose::process
