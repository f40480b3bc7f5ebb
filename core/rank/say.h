// A line of dshang's own on the job's stderr.
//
// Threads: any.  Keeps errno.  One write(2) of at most 512 bytes; where stderr would not take it at once (a
// full pipe) the line is dropped.
#pragma once

namespace dshang::rank {

// Writes "dshang: <text>\n", if there is a stderr.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

// Whether descriptor 2 is a stderr that can be written.  It is none in a process that was started without
// one: the number is then given to the first file or socket that the program opens for itself.  Where the
// program has put something else there since its start, only a terminal or other device, a pipe, or a file
// open for writing alone passes for one.
bool has_stderr();

}  // namespace dshang::rank
