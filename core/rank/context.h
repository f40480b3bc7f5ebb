// What a thread of the rank is doing right now: step, phase, module.  Fed by the C API (dshang.h), the probe
// and, on request, NVTX; read by every call record.
//
// A thread without a phase of its own (the autograd worker) takes that of its last module visit, else the
// process-wide one, which is the newest phase pushed by a thread that has made a step or that is the main
// thread. Step and micro-step belong to the process.
//
// Threads: each function acts on the calling thread.  No lock, no allocation.
// Limits: kDepth phases and kDepth modules a thread; deeper ones are counted and popped, but not named.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"

namespace dshang::rank {

inline constexpr unsigned kDepth = 64;

// What a call record takes from the thread's context.
struct Purpose {
  std::int64_t step;
  std::uint32_t phase;
  std::uint32_t module;
  std::uint64_t params;  // of the gather announced last on this thread, consumed by one call
  std::uint64_t visits_before;
};

// `step_listener` (step_listener.h) is called first.
void begin_step(const flight::Writer& writer, std::int64_t step, std::uint32_t site);
void begin_micro_step(const flight::Writer& writer, std::uint32_t micro);
void push_phase(const flight::Writer& writer, std::uint32_t phase, std::uint32_t site);
void pop_phase(const flight::Writer& writer);
void enter_module(const flight::Writer& writer, std::uint32_t module, std::uint32_t site);
void exit_module(const flight::Writer& writer);

// A module visit that the probe saw: `phase` is forward, backward or recompute; the module stays the thread's
// current one until the next visit or exit.
void visit_module(const flight::Writer& writer, std::uint32_t module, std::uint32_t phase,
                  std::uint8_t training, std::uint32_t site);
void announce_gather(const flight::Writer& writer, std::uint64_t params, std::uint32_t ids_text,
                     std::uint32_t site);

// The loop's loader is exhausted (`detail` = its length as text, or 0), the trace mode changed (`detail` =
// the new one), the interpreter or the process group is going away (`detail` = 0).
void mark(const flight::Writer& writer, flight::VisitKind kind, std::uint32_t detail, std::uint32_t site);

// An exception that the probe saw; type, message and site are ids.
void record_exception(const flight::Writer& writer, std::uint32_t type, std::uint32_t message,
                      std::uint32_t site);

// The purpose of a call that the calling thread is about to make.
Purpose take_purpose(const flight::Writer& writer);

// The same without consuming the gather: for records that are not calls.
Purpose look_purpose(const flight::Writer& writer);

// Index of the calling thread in the flight memory, kThreadEntries where there is no room; `flags`
// (ThreadFlags) are added to its entry and its last_ns is set.
std::uint32_t thread_index(const flight::Writer& writer, std::uint32_t flags);

// The same calls while the process is inert, by name; what is on the stacks at waking keeps its name.
void remember_step(std::int64_t step);
void remember_phase(const char* name);
bool remember_new_phase(const char* name);  // false: the thread is in it already, and nothing was remembered
void forget_phase();
void remember_module(const char* name);
void forget_module();
void remember_note(const char* key, const char* value);

}  // namespace dshang::rank
