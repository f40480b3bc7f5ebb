// report.html: the report with what was recorded around it, as one page that needs nothing else.
#pragma once

#include <string>

#include "core/job/job.h"
#include "core/job/report.h"

namespace dshang::job {

// The page (html/page.html) with style, script and data in it.  Opens from disk, fetches nothing.  Names,
// messages and paths come from the job and are data to the page, never markup.  Below 5 MB for 1 024 ranks:
// what is left out is said on the page.  Costs what make_view costs, and at most some hundred milliseconds.
std::string html_of(const Job& job, const Report& report);

}  // namespace dshang::job
