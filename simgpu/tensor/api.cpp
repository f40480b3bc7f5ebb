// Exported for the numerics shim (../python/simgpu_numerics/queued.py).
#include "simgpu/core/call.h"
#include "simgpu/core/stream.h"
#include "simgpu/tensor/work.h"

using namespace simgpu;

// Queues it. The memory of its operands must stay what it is until then, as for a kernel.
SIMGPU_API int simgpu_tensor_work(const tensor::Work* work, int device, void* stream) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    if (work == nullptr || !tensor::valid(*work) || !valid_device(device)) return kInvalidValue;
    return enqueue_on(
        device, stream, [queued = *work] { tensor::execute(queued); }, Run::kInlineIfIdle);
  });
}

// 0: nothing is queued; 1: something is; 2: it is part of a capture. Unlike cudaStreamQuery it may be asked
// while somebody captures.
SIMGPU_API int simgpu_stream_state(int device, void* stream) {
  return guarded(__func__, 1, [&] {
    if (!valid_device(device)) return 0;
    DeviceScope scope(device);
    if (is_capturing(stream)) return 2;
    return is_idle(stream) ? 0 : 1;
  });
}
