#include "simgpu/core/launch.h"

#include <algorithm>
#include <atomic>

#include "simgpu/core/context.h"
#include "simgpu/core/log.h"
#include "simgpu/core/profile.h"
#include "simgpu/core/settings.h"
#include "simgpu/core/stream.h"

namespace simgpu {
namespace {

std::atomic<int64_t> launches{0};

void fault_current_device() {
  log(0, "device %d faults, as SIMGPU_FAULT_LAUNCH asks for", device());
  fault_device(device(), kIllegalAddress);
}

}  // namespace

Error launch_kernel(void* stream) {
  if (!belongs_to(device(), stream)) return kInvalidHandle;
  if (++launches == settings().fault_launch) return enqueue(stream, fault_current_device, Run::kInlineIfIdle);
  return enqueue(
      stream, [] {}, Run::kInlineIfIdle);
}

int blocks_per_multiprocessor(int threads_per_block) {
  if (threads_per_block <= 0) return 1;
  return std::clamp(profile::kThreadsPerMultiprocessor / threads_per_block, 1,
                    profile::kBlocksPerMultiprocessor);
}

}  // namespace simgpu
