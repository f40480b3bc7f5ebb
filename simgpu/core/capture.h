// Stream capture, with the rules of the CUDA programming guide ("Prohibited and unhandled operations") and of
// cudaStreamBeginCapture and cudaThreadExchangeStreamCaptureMode. A call that breaks one returns its error
// and invalidates the capture. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/core/abi.h"
#include "simgpu/core/graph.h"
#include "simgpu/core/stream_object.h"

namespace simgpu {

class Capture;

// cudaStreamCaptureMode.
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

// cudaStreamCaptureStatus.
enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };

struct CaptureInfo {
  CaptureStatus status = CaptureStatus::kNone;
  unsigned long long id = 0;
  Graph* graph = nullptr;
  std::vector<GraphNode*> tips;  // what the stream's next operation will need
};

Error begin_capture(Stream& stream, CaptureMode mode);

// `graph` is the caller's from then on; nullptr with an error.
Error end_capture(Stream& stream, Graph** graph);

CaptureInfo capture_info(Stream& stream);

// Replaces (or adds to) what the stream's next operation needs.
Error set_capture_tips(Stream& stream, const std::vector<GraphNode*>& tips, bool add);

// Makes an operation of a capturing stream a node of its graph.
Error capture_operation(Stream& stream, Operation operation, Run run);

// What a call does first that is unsafe while somebody captures (allocation, query, synchronisation):
// kCaptureUnsupported if a capture forbids it to this thread, and that capture is invalid then.
Error check_unsafe_call();

// The same for a call that concerns this stream itself (its query, its synchronisation).
Error check_stream_not_captured(Stream& stream);

// Work on the legacy stream while a blocking stream of its device is captured: kCaptureImplicit, and that
// capture is invalid if `invalidate`.
Error check_legacy_use(const Stream& stream, bool invalidate);

// Swaps this thread's mode (cudaThreadExchangeStreamCaptureMode).
CaptureMode exchange_capture_mode(CaptureMode mode);

// Where an event was last recorded in a capture. Guarded by the capture mutex, but for `set`.
struct CapturedPlace {
  std::atomic<bool> set{false};
  std::weak_ptr<Capture> capture;
  std::vector<GraphNode*> tips;
};

// An event is recorded on a capturing stream.
Error record_in_capture(Stream& stream, CapturedPlace* place);

// A stream waits for an event that was recorded in a capture: it joins that capture.
Error wait_in_capture(Stream& stream, const CapturedPlace& place);

// A capturing stream waits for an event of outside.
Error refuse_uncaptured_wait(Stream& stream);

// Query or synchronisation of an event last recorded in a capture.
Error refuse_captured_event(const CapturedPlace& place);

}  // namespace simgpu
