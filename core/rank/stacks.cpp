#include "core/rank/stacks.h"

#include <errno.h>
#include <unistd.h>

#include "core/rank/awake.h"
#include "core/rank/base_libc.h"
#include "core/rank/python_state.h"
#include "core/rank/python_walk.h"
#include "core/rank/task_state.h"

namespace dshang::rank {
namespace {

constexpr unsigned kMostThreads = 256;
constexpr unsigned kMostRecords = flight::kStackEntries / 2;
constexpr unsigned kGilBudgetMs = 300;
constexpr unsigned kWalkedFrames = 256;

struct PythonThread {
  std::uintptr_t state;
  std::uint32_t tid;
};

struct PythonThreads {
  unsigned count = 0;
  PythonThread at[kMostThreads];
};

// dshang's own thread that has, or waits for, the GIL; it has a thread state, too.
std::atomic<std::uint32_t> own_python_thread{0};

// ---- which threads there are
// ---------------------------------------------------------------------------------

// Before 3.11 a thread state knows its thread by pthread_self() only.  The kernel's id lies at a fixed place
// behind that address; where, is learned from the calling thread, which knows both.
template <typename Memory>
std::uint32_t tid_behind_handle(const Memory& memory, std::uint64_t handle) {
  static std::atomic<int> place{-1};
  int offset = place.load(std::memory_order_relaxed);
  if (offset < 0) {
    std::uint64_t own = thread_handle();
    std::uint32_t tid = kernel_thread_id();
    for (int at = 0; own && at < 2048; at += 4) {
      std::uint32_t word;
      if (!read_value(memory, own + static_cast<unsigned>(at), &word)) break;
      if (word == tid) {
        place.store(offset = at, std::memory_order_relaxed);
        break;
      }
    }
  }
  std::uint32_t tid = 0;
  if (offset < 0 || !handle || !read_value(memory, handle + static_cast<unsigned>(offset), &tid)) return 0;
  return tid;
}

template <typename Memory>
void list_threads(const Memory& memory, const Python& python, PythonThreads* threads) {
  const PythonLayout& l = python.layout;
  CheckedMemory checked;  // a handle may be that of a thread that is gone
  void* interpreter = python.functions.main_interpreter();
  if (!interpreter) return;
  std::uintptr_t state = reinterpret_cast<std::uintptr_t>(python.functions.first_thread(interpreter));
  for (unsigned n = 0; state && n < kMostThreads; ++n) {
    std::uint64_t id = 0;
    std::uint32_t tid;
    if (l.thread_id) {
      if (!read_value(memory, state + l.thread_id, &id)) return;
      tid = static_cast<std::uint32_t>(id);
    } else {
      if (!read_value(memory, state + l.thread_handle, &id)) return;
      tid = tid_behind_handle(checked, id);
    }
    if (tid && tid != own_python_thread.load(std::memory_order_relaxed) && is_own_task(tid))
      threads->at[threads->count++] = {state, tid};
    if (!read_value(memory, state + l.thread_next, &state)) return;
  }
}

// Threads that made calls or visits, and the main thread, come first.
bool matters(const flight::Writer& writer, std::uint32_t tid) {
  if (tid == static_cast<std::uint32_t>(getpid())) return true;
  for (unsigned i = 0; i < flight::kThreadEntries; ++i) {
    const flight::ThreadEntry& entry = writer.thread_entry(i);
    std::uint32_t found = entry.tid.load(std::memory_order_acquire);
    if (!found) return false;
    if (found == tid)
      return entry.flags.load(std::memory_order_relaxed) & (flight::kThreadCalls | flight::kThreadVisits);
  }
  return false;
}

template <typename Write>
unsigned for_each_thread(const flight::Writer& writer, const PythonThreads& threads, Write write) {
  unsigned written = 0;
  for (int first = 1; first >= 0; --first) {
    for (unsigned i = 0; i < threads.count && written < kMostRecords; ++i) {
      if (matters(writer, threads.at[i].tid) != (first == 1)) continue;
      if (write(threads.at[i])) ++written;
    }
  }
  return written;
}

// ---- one stack
// -----------------------------------------------------------------------------------------------

struct Chain {
  unsigned count = 0;  // in `at`
  unsigned total = 0;
  FrameAt at[kWalkedFrames];
};

template <typename Memory>
bool read_chain(const Memory& memory, const Python& python, std::uintptr_t state, Chain* chain) {
  bool sound = true;
  bool ended = walk_frames(memory, python.layout, state, [&](const FrameAt& at) {
    if (chain->count < kWalkedFrames) {
      sound = is_code(memory, python, at.code);
      chain->at[chain->count++] = at;
    }
    ++chain->total;
    return sound;
  });
  return ended && sound;
}

bool same(const Chain& a, const Chain& b) {
  if (a.count != b.count || a.total != b.total) return false;
  for (unsigned i = 0; i < a.count; ++i) {
    if (!(a.at[i] == b.at[i])) return false;
  }
  return true;
}

struct NamedStack {
  unsigned count = 0, truncated = 0;
  flight::Frame frames[flight::kStackFrames];
};

template <typename Memory>
void name_chain(const Memory& memory, const Python& python, const Chain& chain, const flight::Writer& writer,
                NamedStack* stack) {
  flight::Frame names[kWalkedFrames];
  unsigned named = 0;
  std::uint64_t hash;
  for (unsigned i = 0; i < chain.count; ++i) {
    if (name_frame(memory, python, chain.at[i], writer, &names[named], &hash)) ++named;
  }
  stack->count = named < flight::kStackFrames ? named : flight::kStackFrames;
  stack->truncated = named - stack->count + (chain.total - chain.count);
  for (unsigned i = 0; i < named; ++i) {
    int place = place_in_table(i, named, flight::kStackFrames);
    if (place >= 0) stack->frames[place] = names[i];
  }
}

// False = nothing to say: a thread without Python frames (idle worker of a native pool).
bool write_stack(const flight::Writer& writer, std::uint32_t request, std::uint32_t tid,
                 flight::StackSource source, const NamedStack& stack) {
  if (source != flight::StackSource::kRefused && !stack.count) return false;
  auto record = writer.open_stack();
  record->time_ns = now_ns();
  record->tid = tid;
  record->source = source;
  record->request = request;
  record->frame_count = stack.count;
  record->truncated = stack.truncated;
  for (unsigned i = 0; i < stack.count; ++i) record->frames[i] = stack.frames[i];
  record.complete();
  return true;
}

// ---- with the GIL
// --------------------------------------------------------------------------------------------

enum GilState : int { kFree, kWaiting, kWalking, kDone, kGivenUp };

struct GilWalk {
  std::atomic<int> state{kFree};
  std::uint32_t waking = 0;  // a forked child has no thread that waits
  flight::Writer writer;
  const Python* python = nullptr;
  std::uint32_t request = 0;
  unsigned written = 0;
};
GilWalk gil_walk;

struct GilFunctions {
  int (*ensure)();
  void (*release)(int);
  bool find() {
    ensure = reinterpret_cast<int (*)()>(find_symbol("PyGILState_Ensure"));
    release = reinterpret_cast<void (*)(int)>(find_symbol("PyGILState_Release"));
    return ensure && release;
  }
};

// Nobody else runs Python code while this thread holds the GIL; threads outside the interpreter leave their
// frames alone.
void* walk_with_gil(void*) {
  GilFunctions gil;
  if (!gil.find()) {
    gil_walk.state.store(kFree);
    return nullptr;
  }
  own_python_thread.store(kernel_thread_id());
  int held = gil.ensure();
  int waiting = kWaiting;
  if (gil_walk.state.compare_exchange_strong(waiting, kWalking)) {
    const Python& python = *gil_walk.python;
    PythonThreads threads;
    list_threads(OwnMemory{}, python, &threads);
    gil_walk.written = for_each_thread(gil_walk.writer, threads, [&](const PythonThread& thread) {
      Chain chain;
      NamedStack stack;
      bool sound = read_chain(OwnMemory{}, python, thread.state, &chain);
      if (sound) name_chain(OwnMemory{}, python, chain, gil_walk.writer, &stack);
      return write_stack(gil_walk.writer, gil_walk.request, thread.tid,
                         sound ? flight::StackSource::kWithGil : flight::StackSource::kRefused, stack);
    });
    gil_walk.state.store(kDone);
  } else {
    gil_walk.state.store(kFree);  // given up: too late
  }
  gil.release(held);
  own_python_thread.store(0);
  return nullptr;
}

bool write_with_gil(const flight::Writer& writer, const Python& python, std::uint32_t request,
                    unsigned* written) {
  if (gil_walk.waking != waking()) {
    gil_walk.waking = waking();
    gil_walk.state.store(kFree);
  }
  int free = kFree;
  if (!gil_walk.state.compare_exchange_strong(free, kWaiting))
    return false;  // an earlier one still waits for the GIL
  gil_walk.writer = writer;
  gil_walk.python = &python;
  gil_walk.request = request;
  if (!start_thread(walk_with_gil, nullptr)) {
    gil_walk.state.store(kFree);
    return false;
  }
  std::uint64_t deadline = now_ns() + kGilBudgetMs * 1000000ull;
  while (gil_walk.state.load() == kWaiting && now_ns() < deadline) sleep_ms(1);
  int waiting = kWaiting;
  if (gil_walk.state.compare_exchange_strong(waiting, kGivenUp)) return false;
  // It has the GIL and walks: that ends by itself.
  while (gil_walk.state.load() == kWalking) sleep_ms(1);
  if (gil_walk.state.load() != kDone) return false;
  *written = gil_walk.written;
  gil_walk.state.store(kFree);
  return true;
}

// ---- without it
// ----------------------------------------------------------------------------------------------

// Only of a thread that slept from before the first walk until after the names were read: its frames, and
// what they refer to, cannot have changed meanwhile.
bool read_asleep(const Python& python, const flight::Writer& writer, const PythonThread& thread,
                 NamedStack* stack) {
  CheckedMemory memory;
  for (unsigned attempt = 0; attempt < 3; ++attempt) {
    if (attempt) sleep_ms(3);
    TaskState before = task_state(thread.tid);
    if (!before.asleep()) continue;
    Chain first, second;
    if (!read_chain(memory, python, thread.state, &first) ||
        !read_chain(memory, python, thread.state, &second) || !same(first, second) ||
        !(task_state(thread.tid) == before)) {
      continue;
    }
    name_chain(memory, python, first, writer, stack);
    if (task_state(thread.tid) == before) return true;
    *stack = {};
  }
  return false;
}

unsigned write_raw(const flight::Writer& writer, const Python& python, std::uint32_t request) {
  CheckedMemory memory;
  PythonThreads threads;
  list_threads(memory, python, &threads);
  return for_each_thread(writer, threads, [&](const PythonThread& thread) {
    NamedStack stack;
    bool read = read_asleep(python, writer, thread, &stack);
    return write_stack(writer, request, thread.tid,
                       read ? flight::StackSource::kRaw : flight::StackSource::kRefused, stack);
  });
}

}  // namespace

unsigned write_stacks(const flight::Writer& writer, std::uint32_t request) {
  int kept_errno = errno;
  unsigned written = 0;
  const Python* python = readable_python(writer);
  if (python && python->functions.is_initialized() && !write_with_gil(writer, *python, request, &written)) {
    written = write_raw(writer, *python, request);
  }
  errno = kept_errno;
  return written;
}

}  // namespace dshang::rank
