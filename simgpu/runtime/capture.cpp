// Stream capture.
#include "simgpu/core/capture.h"

#include "simgpu/core/call.h"

using namespace simgpu;

namespace {

// The arrays that cudaStreamGetCaptureInfo hands out stay valid until the thread's next call of it.
thread_local std::vector<GraphNode*> handed_out_tips;

}  // namespace

SIMGPU_API Error cudaStreamBeginCapture(void* handle, int mode) {
  return runtime_call(__func__, [&]() -> Error {
    if (mode < 0 || mode > static_cast<int>(CaptureMode::kRelaxed)) return kInvalidValue;
    const std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream == nullptr) return kInvalidHandle;
    return begin_capture(*stream, static_cast<CaptureMode>(mode));
  });
}

SIMGPU_API Error cudaStreamEndCapture(void* handle, void** graph) {
  return runtime_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream == nullptr) return kInvalidHandle;
    Graph* captured = nullptr;
    const Error error = end_capture(*stream, &captured);
    *graph = captured;
    return error;
  });
}

SIMGPU_API Error cudaStreamIsCapturing(void* handle, int* status) {
  return runtime_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream == nullptr) return kInvalidHandle;
    if (Error error = check_legacy_use(*stream, false)) return error;
    *status = static_cast<int>(capture_info(*stream).status);
    return kSuccess;
  });
}

// CUDA 13's signature: with the edges' data, which are all default here.
SIMGPU_API Error cudaStreamGetCaptureInfo(void* handle, int* status, unsigned long long* id, void** graph,
                                          void*** dependencies, const void** edges, size_t* count) {
  return runtime_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream == nullptr) return kInvalidHandle;
    if (Error error = check_legacy_use(*stream, false)) return error;
    CaptureInfo info = capture_info(*stream);
    *status = static_cast<int>(info.status);
    if (id != nullptr) *id = info.id;
    if (graph != nullptr) *graph = info.graph;
    if (count != nullptr) *count = info.tips.size();
    if (edges != nullptr) *edges = nullptr;
    handed_out_tips = std::move(info.tips);
    if (dependencies != nullptr) *dependencies = reinterpret_cast<void**>(handed_out_tips.data());
    return kSuccess;
  });
}

SIMGPU_API Error cudaStreamUpdateCaptureDependencies(void* handle, void** nodes, const void*, size_t count,
                                                     unsigned flags) {
  return runtime_call(__func__, [&]() -> Error {
    constexpr unsigned kAdd = 0;  // cudaStreamAddCaptureDependencies; 1: set
    const std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream == nullptr) return kInvalidHandle;
    std::vector<GraphNode*> tips;
    for (size_t i = 0; i < count; ++i) tips.push_back(static_cast<GraphNode*>(nodes[i]));
    return set_capture_tips(*stream, tips, flags == kAdd);
  });
}

SIMGPU_API Error cudaThreadExchangeStreamCaptureMode(int* mode) {
  return runtime_plain(__func__, [&]() -> Error {
    if (mode == nullptr || *mode < 0 || *mode > static_cast<int>(CaptureMode::kRelaxed)) return kInvalidValue;
    *mode = static_cast<int>(exchange_capture_mode(static_cast<CaptureMode>(*mode)));
    return kSuccess;
  });
}
