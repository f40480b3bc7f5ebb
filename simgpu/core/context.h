// Devices, contexts and errors as one thread sees them.
//
// The CUDA runtime's idea (a current device per thread, 0 at first) and the driver's (a current context per thread,
// none at first) are kept together: selecting a device makes its primary context current, and the other way round.
#pragma once

#include "simgpu/core/abi.h"

namespace simgpu {

// A primary context; its address is the CUcontext.
struct Context {
  int device;
};

// --- devices ---------------------------------------------------------------------------------------------------

int device_count();                    // visible devices
int device();                          // current device of this thread
void set_device(int device);           // no check, no context: for the simulator's own threads
int physical_device(int device);       // index on the machine, behind CUDA_VISIBLE_DEVICES
bool valid_device(int device);         // 0 <= device < device_count()

// While it lives the thread's current device and context are those of `device`. For work on behalf of another one.
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

// --- entering the simulator ------------------------------------------------------------------------------------

// First step of every call but the plainest: loads NVML beside this library, and registers for fork. Error 3 in a
// child that was forked after this was done in its parent, as on hardware: such a child must not use CUDA.
Error start();

// start(), then makes the current device's primary context active and current. Error 100 without devices, the
// device's fault if it has one.
Error enter_device();

// start(), then error 201 if this thread has no current context, else the device's fault if it has one.
Error require_context();

// --- contexts --------------------------------------------------------------------------------------------------

Context* primary_context(int device);
Context* current_context();               // nullptr: none
void set_current_context(Context* context);
Context* find_context(void* handle);      // nullptr: not a context of ours
bool context_active(int device);
void activate_context(int device);

// --- errors ----------------------------------------------------------------------------------------------------

// Keeps an error as this thread's last one, as every function of the runtime does; success leaves it alone.
Error keep_error(Error error);
Error last_error(bool reset);             // cudaGetLastError, cudaPeekAtLastError

// A device that has faulted (an illegal address, a failed launch) returns that error from then on: cudaGetLastError
// does not clear it.
void fault_device(int device, Error error);
Error device_fault(int device);           // kSuccess: none

const char* error_name(Error error);      // "cudaErrorInvalidValue"; nullptr: unknown
const char* error_text(Error error);      // "invalid argument"; nullptr: unknown

}  // namespace simgpu
