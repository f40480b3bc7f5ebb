// A line of dshang's own on the job's stderr.
//
// Threads: any.  Keeps errno.  One write(2) of at most 512 bytes; where stderr would not take it at once (a
// full pipe) the line is dropped.
#pragma once

namespace dshang::rank {

// Writes "dshang: <text>\n".
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

}  // namespace dshang::rank
