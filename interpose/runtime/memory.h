// The memory ledger's counters and its way into flight memory.  What the wrappers call is in api.h.
//
// Counted in static memory while the process is inert, in the flight memory's MemoryLive from the moment it
// wakes.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"

namespace dshang::interpose::memory {

// Moves the counters into the flight memory; before the recorder is published.
void wake(const flight::Writer& writer);

// Takes in what threads counted in static memory while wake() ran; after the recorder is published.
void settle();

// A forked child starts from zero: the parent's allocations are not its own.  Async-signal-safe.
void fall_asleep();

// Closes the step before `new_step` by a MemoryStep record: live bytes, peaks and counts of that step.
// Called by begin_step() through rank::step_listener.
void memory_step(std::int64_t new_step);

// The same for a program that announces no steps: a record without step, where anything was allocated, freed or refused
// since the last one.  Called by the helper thread once a second.
void memory_period();

// Asks the driver how much of the current device is free, as the poller does now and then; records reckon from there.
// Nothing is learned while a call that takes or gives back memory is under way (cudaFree waits for the device): the
// answer and the ledger would be of different moments.  False: so it was, and the driver, which takes its lock for the
// answer, was not asked.
bool look_at_device();

// Device memory made by cuMemCreate: counted until the handle is released and every mapping of it is gone.
void physical_created(std::uint64_t handle, std::uint64_t bytes, bool on_device);
void physical_mapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle);

// Before the real cuMemRelease and cuMemUnmap, since handle and addresses may be given out again at once.
// These refuse only what was never made or mapped, which is unknown here too.
void physical_released(std::uint64_t handle);
void range_unmapped(std::uint64_t address, std::uint64_t bytes);

}  // namespace dshang::interpose::memory
