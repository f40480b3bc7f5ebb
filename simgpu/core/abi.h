// The numbers and small structures of the CUDA ABI that more than one file of the simulated GPU needs. Own
// declarations, so that it builds without CUDA headers; tests/unit/simgpu/test_abi.cpp compares them with the
// real headers where those are installed. Values: driver_types.h and cuda.h of CUDA 13.0.
#pragma once

#include <cstddef>
#include <cstdint>

// An exported function. Nothing else of the library is visible (exports.map).
#define SIMGPU_API extern "C" __attribute__((visibility("default")))

namespace simgpu {

// cudaError_t and CUresult: both libraries use the same numbers for what is used here.
enum Error : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidConfiguration = 9,
  kInvalidSymbol = 13,
  kInvalidMemcpyDirection = 21,
  kMissingConfiguration = 52,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kPeerAlreadyEnabled = 704,
  kPeerNotEnabled = 705,
  kHostAlreadyRegistered = 712,
  kHostNotRegistered = 713,
  kLaunchFailure = 719,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kUnknownError = 999,
};

// What cudaRuntimeGetVersion, cudaDriverGetVersion and NVML report.
inline constexpr int kCudaVersion = 13000;

// Most devices that SIMGPU_DEVICES may ask for.
inline constexpr int kMaxDevices = 64;

struct Dim3 {
  unsigned x;
  unsigned y;
  unsigned z;
};

}  // namespace simgpu
