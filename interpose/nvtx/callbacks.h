// The functions that stand in an instance's tables: dshang looks, then the tool before it (if any) is called.
#pragma once

#include "interpose/nvtx/abi.h"

namespace dshang::nvtx {

// The tool's functions of one instance; null = it has none there.
struct Next {
  int (*push_ex)(const Attributes*);
  int (*push_a)(const char*);
  int (*push_w)(const wchar_t*);
  int (*pop)();
  int (*domain_push)(const void*, const Attributes*);
  int (*domain_pop)(const void*);
  const void* (*register_a)(const void*, const char*);
  const void* (*register_w)(const void*, const wchar_t*);
  const void* (*create_a)(const char*);
  const void* (*create_w)(const wchar_t*);
};

// Writes dshang's functions over an instance's pointers; `next` is what stood there.  `has_tool`: handles are
// the tool's. False: there are more different tools than there is room for, nothing was changed.
bool attach(Function** core, unsigned core_size, Function** core2, unsigned core2_size, const Next& next,
            bool has_tool);

}  // namespace dshang::nvtx
