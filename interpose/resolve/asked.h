// The NCCL that callers have from dlsym() on a handle of their own (ctypes, XGBoost's stub): such a caller names the library
// itself, and where it stands says nothing of it.
//
// One a process: a wrapper that was handed out cannot know which of two was meant.
//
// Threads: any.
#pragma once

#include "interpose/resolve/resolver.h"

namespace dshang::interpose::resolve {

// dlsym() has found `real` for this row of NCCL.  False: it lies in another library than the one asked for before.
bool ask(Row row, void* real);

// What ask() was given; null = nothing.
void* asked_function(Row row);

// Which library that is; kNoLibrary = none was asked for.
LibraryId asked_library();

}  // namespace dshang::interpose::resolve
