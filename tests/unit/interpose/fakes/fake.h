// The control of a fake library (fake.cpp), which has every function of the rows and does next to nothing.
//
// A test sets what the next calls return and looks at what came in.  Every copy of a fake library has its own state and
// hands out its own control.
#pragma once

#include <cstddef>
#include <cstdint>

struct FakeControl {
  // Forgets everything: counts, results, hook, groups.
  void (*reset)();

  // How often the function of this name was called; -1 = no such function.
  int (*count)(const char* name);

  // What it returns from now on; 0 at first.
  void (*returns)(const char* name, int result);

  // `hook` is called inside every function with its name, before it returns.
  void (*on_call)(void (*hook)(const char* name));

  // Calls of this name write 42 to errno.
  void (*sets_errno)(const char* name);

  // Communicators are created in the background: the creating call returns ncclInProgress.  `early`: the handle is
  // written at once all the same.  They are ready after finish_creations().
  void (*nonblocking)(bool on, bool early);
  void (*finish_creations)();

  // Rank and size that a split or shrink gives its child (0 and 2 at first).
  void (*child)(int rank, int size);

  // Address that the next allocation returns.
  void (*next_address)(std::uintptr_t address);

  // How often ncclCommUserRank was called on a communicator that was not ready.
  int (*asked_too_early)();

  // errno as the newest call found it.
  int (*errno_seen)();
};

extern "C" const FakeControl* fake_nccl_control();
extern "C" const FakeControl* fake_cudart_control();
