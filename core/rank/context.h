// What a thread of the rank is doing right now: step, phase, module.  Fed by the C API (dshang.h), the probe and,
// on request, NVTX; read by every call record.
//
// A thread without a phase of its own (the autograd worker) takes the process-wide one, which is the newest phase
// pushed by a thread that has made a step or that is the main thread.
//
// Threads: each function acts on the calling thread.  No lock, no allocation.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"

namespace dshang::rank {

// What a call record takes from the thread's context.
struct Purpose {
  std::int64_t step;
  std::uint32_t phase;
  std::uint32_t module;
  std::uint64_t params;   // of the gather announced last on this thread, consumed by one call
  std::uint64_t visits_before;
};

void begin_step(const flight::Writer& writer, std::int64_t step, std::uint32_t site);
void begin_micro_step(const flight::Writer& writer, std::uint32_t micro);
void push_phase(const flight::Writer& writer, std::uint32_t phase, std::uint32_t site);
void pop_phase(const flight::Writer& writer);
void enter_module(const flight::Writer& writer, std::uint32_t module, std::uint32_t site);
void exit_module(const flight::Writer& writer);

// A module visit that the probe saw: `phase` is forward, backward or recompute; the module stays the thread's current
// one until the next visit or exit.
void visit_module(const flight::Writer& writer, std::uint32_t module, std::uint32_t phase, std::uint8_t training,
                  std::uint32_t site);
void announce_gather(const flight::Writer& writer, std::uint64_t params, std::uint32_t ids_text, std::uint32_t site);

// The purpose of a call that the calling thread is about to make.
Purpose take_purpose(const flight::Writer& writer);

}  // namespace dshang::rank
