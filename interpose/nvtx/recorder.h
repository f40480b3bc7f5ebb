// What libdshang.so does with ranges and notes; null where it is not in the process.
#pragma once

#include "core/rank/ranges.h"

extern "C" {
[[gnu::weak]] void dshang_range_push(std::uint32_t domain, const char* phase);
[[gnu::weak]] void dshang_range_pop(std::uint32_t domain);
[[gnu::weak]] void dshang_note(const char* key, const char* value);
}
