// This machine, for a bug report: what the doctor measured, and the words of programs that others know.
#pragma once

#include "doctor/facts.h"
#include "issue/bundle.h"

namespace dshang::issue {

// Adds system, versions of packages, nvidia-smi, topology and ds_report, all asked at once; what is not
// installed or does not answer in time (ds_report: a minute) is said in `missing`.
void add_machine(const doctor::Facts& facts, Material* material);

}  // namespace dshang::issue
