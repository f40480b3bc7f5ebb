// dshang's own trouble, said once and in one line on the job's stderr (core/rank/say.h: never blocks, keeps
// errno).
#pragma once

#include <atomic>

#include "core/rank/say.h"

// The line of one place in the code: the first pass says it, the others do not.
#define DSHANG_LOG_ONCE(...)                                           \
  do {                                                                 \
    static std::atomic<bool> dshang_said{false};                       \
    if (!dshang_said.exchange(true)) ::dshang::rank::say(__VA_ARGS__); \
  } while (0)
