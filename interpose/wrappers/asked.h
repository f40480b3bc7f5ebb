// Wrappers for those who have a function of NCCL from dlsym() on a handle of their own.
#pragma once

#include "interpose/symbols/rows.h"

namespace dshang::interpose {

struct AskedWrapper {
  Row row = Row::kRowCount;
  void* function = nullptr;  // null = no such row
};

// The wrapper of a function of NCCL that calls what resolve::ask() was given for its row.
AskedWrapper asked_wrapper(const char* name);

}  // namespace dshang::interpose
