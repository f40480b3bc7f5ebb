// dshang's own trouble, said once and in one line on the job's stderr.
//
// Threads: any, also signal handlers of our own for constant texts.  Never blocks: where stderr would not take the line
// at once (a full pipe) it is dropped.  Keeps errno.
#pragma once

#include <atomic>

namespace dshang::interpose {

// Writes "dshang: <text>\n" by one write(2); at most 512 bytes.
[[gnu::format(printf, 1, 2)]] void log_line(const char* format, ...);

// The line of one place in the code: the first pass says it, the others do not.
#define DSHANG_LOG_ONCE(...)                                                     \
  do {                                                                           \
    static std::atomic<bool> dshang_said{false};                                 \
    if (!dshang_said.exchange(true)) ::dshang::interpose::log_line(__VA_ARGS__); \
  } while (0)

}  // namespace dshang::interpose
