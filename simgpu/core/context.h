// Devices, contexts and errors as one thread sees them.
//
// The CUDA runtime's idea (a current device per thread, 0 at first) and the driver's (a current context per
// thread, none at first) are kept together: selecting a device makes its primary context current, and the
// other way round.
#pragma once

#include "simgpu/core/abi.h"

namespace simgpu {

// A primary context; its address is the CUcontext.
struct Context {
  int device;
};

// --- devices -------------------------------------------------------------------------------------

int device_count();               // visible devices
int device();                     // current device of this thread
void set_device(int device);      // no check, and no context: for the simulator's own threads
int physical_device(int device);  // index on the machine, behind CUDA_VISIBLE_DEVICES
bool valid_device(int device);    // 0 <= device < device_count()

// While it lives, the thread's current device and context are those of `device`.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int device_;
  Context* context_;
};

// --- entering the simulator ----------------------------------------------------------------------

// First step of every call of the runtime but the plainest, and cuInit: registers for fork, loads NVML.
// kNotInitialized in a child that was forked after this was done in its parent: as on hardware, such a child
// must not use CUDA.
Error start();

// First step of the driver's calls: kNotInitialized before start() as well.
Error require_start();

// start(), then makes the current device's primary context active and current. kNoDevice without devices, the
// device's fault if it has one.
Error enter_device();

// require_start(), then kInvalidContext if this thread has no current context, the device's fault if it has
// one.
Error require_context();

// Loads libnvidia-ml.so.1 beside this library, once, so that whoever opens it by that name gets it.
void load_nvml();

// --- contexts ------------------------------------------------------------------------------------

Context* primary_context(int device);
Context* current_context();  // nullptr: none
void set_current_context(Context* context);
Context* find_context(const void* handle);  // nullptr: not a context of a visible device
bool context_active(int device);
void activate_context(int device);

// --- errors --------------------------------------------------------------------------------------

// Keeps an error as this thread's last one, as every function of the runtime does; success leaves it alone.
Error keep_error(Error error);
Error last_error(bool reset);  // cudaGetLastError (reset), cudaPeekAtLastError

// A device that has faulted (an illegal address, a failed launch) answers with that error from then on, and
// cudaGetLastError does not clear it.
void fault_device(int device, Error error);
Error device_fault(int device);  // kSuccess: none

const char* runtime_error_name(int error);  // "cudaErrorInvalidValue"; nullptr: unknown
const char* driver_error_name(int error);   // "CUDA_ERROR_INVALID_VALUE"; nullptr: unknown
const char* error_text(int error);          // "invalid argument"; nullptr: unknown

}  // namespace simgpu
