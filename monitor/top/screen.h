// The live view of `dshang top` on a terminal.
#pragma once

#include "monitor/top/live_job.h"

namespace dshang::monitor {

// Shows the job until the user ends it (q, Ctrl-C) or its files are gone; the keys are on its last line.
// Needs a terminal of at least 60 columns and 8 lines; a smaller one shows a part.  Returns the program's
// exit status.
int show_live(const LiveJob& job, double interval);

// The rows of a look, as text of so many columns: for pipes and logs.
std::string text_of(const JobLook& look, std::size_t width, bool group);

}  // namespace dshang::monitor
