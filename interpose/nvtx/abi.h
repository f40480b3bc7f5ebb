// How NVTX 3 hands its calls to a tool, in types of our own: no header of NVIDIA is needed to build.
//
// Each library that uses NVTX carries an instance of it.  At its first call an instance loads the library
// that NVTX_INJECTION64_PATH names and calls InitializeInjectionNvtx2 with a function that gives tables; the
// tool writes its functions over the pointers there, and what it leaves alone does nothing. Source: NVTX 3
// headers of CUDA 13.0, nvToolsExt.h and nvtxDetail/nvtxTypes.h, nvtxInit.h, nvtxImpl.h; numbers and layouts
// have been the same since 3.0.  tests/nvtx compares them with the headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dshang::nvtx {

using Function = void (*)();

// Of the export tables the one with callbacks.
inline constexpr std::uint32_t kCallbacksTable = 1;
enum class Module : int { kCore = 1, kCuda = 2, kOpenCl = 3, kCudart = 4, kCore2 = 5, kSync = 6 };
inline constexpr Module kModules[] = {Module::kCore,   Module::kCuda,  Module::kOpenCl,
                                      Module::kCudart, Module::kCore2, Module::kSync};

struct CallbacksTable {
  std::size_t struct_size;
  // `*slots`: pointers to the instance's function pointers, `*size` of them with the empty one at 0.  0 = no
  // such module.
  int (*module)(Module module, Function*** slots, unsigned* size);
};
using GetTable = const void* (*)(std::uint32_t table);
using Initialize = int (*)(GetTable get_table);  // 0 = failed

// Positions in a module's table.
enum Core : unsigned { kRangePushEx = 8, kRangePushA = 9, kRangePushW = 10, kRangePop = 11 };
enum Core2 : unsigned {
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
};

enum class MessageType : std::int32_t { kUnknown = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

struct Attributes {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  MessageType message_type;
  const void* message;  // char*, wchar_t*, or the handle of a registered string
};

// What pushing and popping return where no tool counts the levels.
inline constexpr int kNoTracking = -2;

}  // namespace dshang::nvtx
