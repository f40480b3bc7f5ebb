#pragma once

namespace dshang::job {

#ifndef DSHANG_VERSION
#define DSHANG_VERSION "0.1.0"
#endif
inline constexpr const char* kVersion = DSHANG_VERSION;

}  // namespace dshang::job
