// The functions of the CUDA driver that dshang calls itself.
//
// Taken by name from the libcuda that the process has loaded already; never loads one.  The driver API and
// not the runtime: it has no last error that the host could find, and no lazy initialisation.
// Types are those of cuda.h with CUresult as int and every handle as void*.
#pragma once

#include <cstddef>

namespace dshang::interpose::driver {

inline constexpr int kSuccess = 0;
inline constexpr int kNotReady = 600;          // CUDA_ERROR_NOT_READY
inline constexpr int kInvalidHandle = 400;     // CUDA_ERROR_INVALID_HANDLE
inline constexpr unsigned kDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING
inline constexpr int kCaptureRelaxed = 2;      // CU_STREAM_CAPTURE_MODE_RELAXED
inline constexpr int kCaptureNone = 0;         // CU_STREAM_CAPTURE_STATUS_NONE

struct Functions {
  // Present in every table.
  int (*ctx_get_current)(void** context);
  int (*ctx_set_current)(void* context);
  int (*event_create)(void** event, unsigned flags);
  int (*event_record)(void* event, void* stream);
  int (*event_query)(void* event);
  int (*stream_is_capturing)(void* stream, int* status);
  // Null where the driver has none.
  int (*stream_get_ctx)(void* stream, void** context);
  int (*thread_exchange_capture_mode)(int* mode);
  int (*mem_get_info)(std::size_t* free_bytes, std::size_t* total_bytes);
  int (*ctx_get_device)(int* device);
  int (*driver_get_version)(int* version);
};

// Null while no libcuda is loaded (looked for again now and then) and where it lacks one of the first six.
// Threads: any.
const Functions* functions();

// For tests: takes the place of the loaded library; null puts it back.
void replace_functions(const Functions* functions);

}  // namespace dshang::interpose::driver
