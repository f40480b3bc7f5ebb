// Runs every registered detector over a job.  Pure: the same job (records, journal, parameters) gives the
// same analysis.  Costs a walk over all records: call it when Trigger says so, not at every poll.
#pragma once

#include "core/job/job.h"
#include "core/job/report.h"

namespace dshang::detect {

job::Analysis analyse(const job::Job& job);

}  // namespace dshang::detect
