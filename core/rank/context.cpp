#include "core/rank/context.h"

#include <unistd.h>

#include "core/rank/awake.h"
#include "core/rank/base_libc.h"
#include "core/rank/early_names.h"
#include "core/rank/pyframes.h"
#include "core/rank/python_state.h"
#include "core/rank/step_listener.h"

namespace dshang::rank {
namespace {

struct Stack {
  std::uint32_t depth;  // may exceed kDepth
  std::uint32_t ids[kDepth];

  void push(std::uint32_t id) {
    if (depth < kDepth) ids[depth] = id;
    ++depth;
  }
  std::uint32_t top() const { return depth && depth <= kDepth ? ids[depth - 1] : 0; }
  // An unbalanced pop is ignored.
  std::uint32_t pop() {
    std::uint32_t id = top();
    if (depth) --depth;
    return id;
  }
};

struct Context {
  std::uint32_t waking;  // the waking that the ids belong to
  std::uint32_t thread;  // index in the flight memory
  std::uint32_t flags;   // ThreadFlags that its entry has
  bool known;            // thread and leads are set
  bool leads;            // makes steps, or is the main thread: its phases are the process's
  bool visiting;
  std::uint32_t visit_module, visit_phase;
  std::uint64_t params;
  Stack phases, modules;
};

// The preload is loaded at the start of the process: its thread-local memory is never allocated later.
[[gnu::tls_model("initial-exec")]] thread_local Context context;

std::atomic<std::uint32_t> process_phase{0};
std::atomic<std::uint32_t> process_micro{0};
std::atomic<std::int64_t> early_step{flight::kNoStep};

void find_itself(Context& c) {
  std::uint32_t tid = kernel_thread_id();
  if (tid == static_cast<std::uint32_t>(getpid())) c.leads = true;
  c.known = true;
}

// Ids of an earlier flight memory name something else in this one.
void drop_void_ids(Stack& stack) {
  for (std::uint32_t i = 0; i < stack.depth && i < kDepth; ++i) {
    if (!(stack.ids[i] & kEarly)) stack.ids[i] = 0;
  }
}

flight::Open<flight::VisitRecord> open_visit(const flight::Writer& writer, Context& c, flight::VisitKind kind,
                                             std::uint32_t site);
std::uint32_t phase_of(const Context& c);

// Brings the thread's context over to this flight memory: what was pushed while the process was inert becomes
// a visit.
void arrive(const flight::Writer& writer, Context& c) {
  c.waking = waking();
  c.known = false;
  find_itself(c);
  c.thread = writer.thread(kernel_thread_id());
  c.flags = 0;
  c.visiting = false;
  c.visit_module = c.visit_phase = 0;
  c.params = 0;
  drop_void_ids(c.phases);
  drop_void_ids(c.modules);
  for (std::uint32_t i = 0; i < c.phases.depth && i < kDepth; ++i) {
    if (!c.phases.ids[i]) continue;
    std::uint32_t phase = c.phases.ids[i] = late_name(writer, c.phases.ids[i]);
    auto visit = open_visit(writer, c, flight::VisitKind::kPhasePush, 0);
    visit->phase = phase;
    visit.complete();
  }
  for (std::uint32_t i = 0; i < c.modules.depth && i < kDepth; ++i) {
    if (!c.modules.ids[i]) continue;
    std::uint32_t module = c.modules.ids[i] = late_name(writer, c.modules.ids[i]);
    auto visit = open_visit(writer, c, flight::VisitKind::kModuleEnter, 0);
    visit->module = module;
    visit->phase = phase_of(c);
    visit.complete();
  }
  if (c.leads && c.phases.depth) process_phase.store(c.phases.top(), std::memory_order_relaxed);
}

Context& here(const flight::Writer& writer) {
  Context& c = context;
  if (c.waking != waking() || !c.known) arrive(writer, c);
  return c;
}

std::uint32_t phase_of(const Context& c) {
  if (c.phases.depth) return c.phases.top();
  if (c.visiting && c.visit_phase) return c.visit_phase;
  return process_phase.load(std::memory_order_relaxed);
}

std::uint32_t module_of(const Context& c) { return c.visiting ? c.visit_module : c.modules.top(); }

void note_use(const flight::Writer& writer, Context& c, std::uint32_t flags, std::uint64_t now) {
  if (c.thread >= flight::kThreadEntries) return;
  flight::ThreadEntry& entry = writer.thread_entry(c.thread);
  if ((c.flags & flags) != flags) {
    c.flags |= flags;
    entry.flags.fetch_or(flags, std::memory_order_relaxed);
  }
  entry.last_ns.store(now, std::memory_order_relaxed);
}

flight::Open<flight::VisitRecord> open_visit(const flight::Writer& writer, Context& c, flight::VisitKind kind,
                                             std::uint32_t site) {
  std::uint64_t now = now_ns();
  note_use(writer, c, flight::kThreadVisits, now);
  auto visit = writer.open_visit();
  visit->time_ns = now;
  visit->calls_before = writer.header().call_head.load(std::memory_order_relaxed);
  visit->step = writer.header().step.load(std::memory_order_relaxed);
  visit->site = site;
  visit->micro = process_micro.load(std::memory_order_relaxed);
  visit->thread = static_cast<std::uint16_t>(c.thread);
  visit->kind = kind;
  visit->training = 2;
  return visit;
}

// The process's phase follows the stacks of the threads that lead.
void publish_phase(const Context& c) {
  if (c.leads) process_phase.store(c.phases.top(), std::memory_order_relaxed);
}

// Of a model that is called outside every phase (the bare module of a ZeRO-3 engine, to evaluate it) the last
// visit is left by nobody; a step or a phase that begins shows that it is over.
void leave_last_visit(Context& c) {
  if (!c.phases.depth) c.visiting = false;
}

void announce_step(const flight::Writer& writer, Context& c, std::int64_t step, std::uint32_t site) {
  leave_last_visit(c);
  process_micro.store(0, std::memory_order_relaxed);
  writer.header().step.store(step, std::memory_order_relaxed);
  auto visit = open_visit(writer, c, flight::VisitKind::kStep, site);
  visit->step = step;
  visit->phase = phase_of(c);
  visit.complete();
}

}  // namespace

void begin_step(const flight::Writer& writer, std::int64_t step, std::uint32_t site) {
  Context& c = here(writer);
  notify_step(step);
  c.leads = true;
  announce_step(writer, c, step, site);
}

void begin_micro_step(const flight::Writer& writer, std::uint32_t micro) {
  Context& c = here(writer);
  process_micro.store(micro, std::memory_order_relaxed);
  auto visit = open_visit(writer, c, flight::VisitKind::kMicroStep, 0);
  visit->phase = phase_of(c);
  visit.complete();
}

void push_phase(const flight::Writer& writer, std::uint32_t phase, std::uint32_t site) {
  Context& c = here(writer);
  leave_last_visit(c);
  c.phases.push(phase);
  publish_phase(c);
  auto visit = open_visit(writer, c, flight::VisitKind::kPhasePush, site);
  visit->phase = phase;
  visit->module = module_of(c);
  visit.complete();
}

void pop_phase(const flight::Writer& writer) {
  Context& c = here(writer);
  if (!c.phases.depth) return;
  std::uint32_t phase = c.phases.pop();
  publish_phase(c);
  auto visit = open_visit(writer, c, flight::VisitKind::kPhasePop, 0);
  visit->phase = phase;
  visit->module = module_of(c);
  visit.complete();
}

void enter_module(const flight::Writer& writer, std::uint32_t module, std::uint32_t site) {
  Context& c = here(writer);
  c.visiting = false;
  c.modules.push(module);
  auto visit = open_visit(writer, c, flight::VisitKind::kModuleEnter, site);
  visit->module = module;
  visit->phase = phase_of(c);
  visit.complete();
}

void exit_module(const flight::Writer& writer) {
  Context& c = here(writer);
  if (!c.visiting && !c.modules.depth) return;
  std::uint32_t phase = c.visiting && c.visit_phase ? c.visit_phase : phase_of(c);
  std::uint32_t module = c.visiting ? c.visit_module : c.modules.pop();
  c.visiting = false;
  auto visit = open_visit(writer, c, flight::VisitKind::kModuleExit, 0);
  visit->module = module;
  visit->phase = phase;
  visit.complete();
}

void visit_module(const flight::Writer& writer, std::uint32_t module, std::uint32_t phase,
                  std::uint8_t training, std::uint32_t site) {
  Context& c = here(writer);
  c.visiting = true;
  c.visit_module = module;
  c.visit_phase = phase;
  auto visit = open_visit(writer, c, flight::VisitKind::kModuleEnter, site);
  visit->module = module;
  visit->phase = phase ? phase : phase_of(c);
  visit->training = training;
  visit.complete();
}

void announce_gather(const flight::Writer& writer, std::uint64_t params, std::uint32_t ids_text,
                     std::uint32_t site) {
  Context& c = here(writer);
  c.params = params;
  auto visit = open_visit(writer, c, flight::VisitKind::kGather, site);
  visit->params = params;
  visit->detail = ids_text;
  visit->module = module_of(c);
  visit->phase = phase_of(c);
  visit.complete();
}

void mark(const flight::Writer& writer, flight::VisitKind kind, std::uint32_t detail, std::uint32_t site) {
  Context& c = here(writer);
  auto visit = open_visit(writer, c, kind, site);
  visit->detail = detail;
  visit->module = module_of(c);
  visit->phase = phase_of(c);
  visit.complete();
}

void record_exception(const flight::Writer& writer, std::uint32_t type, std::uint32_t message,
                      std::uint32_t site) {
  Context& c = here(writer);
  auto exception = writer.open_exception();
  exception->time_ns = now_ns();
  exception->step = writer.header().step.load(std::memory_order_relaxed);
  exception->type = type;
  exception->message = message;
  exception->site = site;
  exception->phase = phase_of(c);
  exception->module = module_of(c);
  exception->thread = c.thread;
  exception.complete();
}

Purpose look_purpose(const flight::Writer& writer) {
  Context& c = here(writer);
  Purpose purpose;
  purpose.step = writer.header().step.load(std::memory_order_relaxed);
  purpose.phase = phase_of(c);
  purpose.module = module_of(c);
  purpose.params = c.params;
  purpose.visits_before = writer.header().visit_head.load(std::memory_order_relaxed);
  return purpose;
}

Purpose take_purpose(const flight::Writer& writer) {
  Purpose purpose = look_purpose(writer);
  context.params = 0;
  return purpose;
}

std::uint32_t thread_index(const flight::Writer& writer, std::uint32_t flags) {
  Context& c = here(writer);
  note_use(writer, c, flags, now_ns());
  return c.thread;
}

void remember_step(std::int64_t step) {
  context.leads = true;
  early_step.store(step, std::memory_order_relaxed);
}

void remember_phase(const char* name) {
  Context& c = context;
  if (!c.known) find_itself(c);
  c.phases.push(early_name(name));
  publish_phase(c);
}

bool remember_new_phase(const char* name) {
  std::uint32_t id = early_name(name);
  if (id && context.phases.depth && context.phases.top() == id) return false;
  remember_phase(name);
  return true;
}

void forget_phase() {
  context.phases.pop();
  publish_phase(context);
}

void remember_module(const char* name) { context.modules.push(early_name(name)); }

void forget_module() { context.modules.pop(); }

void remember_note(const char* key, const char* value) { early_note(early_name(key), early_name(value)); }

// ---- awake.h
// ---------------------------------------------------------------------------------------------------

namespace {

std::atomic<void*> memory{nullptr};
std::atomic<std::uint32_t> wakings{0};

}  // namespace

flight::Writer awake() { return flight::Writer(memory.load(std::memory_order_acquire)); }

std::uint32_t waking() { return wakings.load(std::memory_order_acquire); }

void wake(const flight::Writer& writer) {
  std::uint32_t phase = process_phase.load(std::memory_order_relaxed);
  process_phase.store(phase & kEarly ? late_name(writer, phase) : 0, std::memory_order_relaxed);
  process_micro.store(0, std::memory_order_relaxed);
  forget_sites();
  wakings.fetch_add(1, std::memory_order_acq_rel);
  write_early_notes(writer);
  std::int64_t step = early_step.load(std::memory_order_relaxed);
  if (step != flight::kNoStep) announce_step(writer, here(writer), step, 0);
  memory.store(&writer.header(), std::memory_order_release);
}

void fall_asleep() {
  memory.store(nullptr, std::memory_order_release);
  early_step.store(flight::kNoStep, std::memory_order_relaxed);
  process_phase.store(0, std::memory_order_relaxed);
  step_listener.store(nullptr, std::memory_order_release);
  python_forked();
  arming_forked();
}

}  // namespace dshang::rank
