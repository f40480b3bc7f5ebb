// The readable form of RankRecords: what `dshang report --dump` prints and golden tests are written in.
//
//   rank 0 pid 100 world 2            a rank begins; everything up to the next `rank` line is its own
//   comm world                        a communicator; calls name it (the first where they do not)
//   visit step 1
//   visit phase_push forward
//   visit module_enter layers.0
//   call all_gather 1000 bf16 site="train.py:10 forward | train.py:40 main"
//   visit module_exit
//   call all_reduce 1 f32 sum queued
//
// One record a line; what a line leaves out has the value that follows from the lines above (text_fields.h
// lists all keys and what they default to): position and number count up, step, phase and module are those of
// the visits, a call is `done`, each record comes 1 ms after the one before.  Times are seconds since the
// rank's `start`, `-` is none.
// `#` begins a comment, names with other letters are "quoted".  The frames of a site are innermost first.
#pragma once

#include <string>

#include "core/job/names.h"
#include "core/job/records.h"

namespace dshang::job {

// For every text that dump() made, dump(parse(text)) is that text.  Texts of several ranks may be put
// together.
std::string dump(const RankRecords& records, const Names& names);

}  // namespace dshang::job
