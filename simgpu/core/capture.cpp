#include "simgpu/core/capture.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

namespace simgpu {

class Capture {
 public:
  Capture(std::shared_ptr<Stream> stream, CaptureMode capture_mode, unsigned long long number)
      : origin(std::move(stream)), mode(capture_mode), id(number), owner(std::this_thread::get_id()) {}

  const std::shared_ptr<Stream> origin;
  const CaptureMode mode;
  const unsigned long long id;
  const std::thread::id owner;
  bool invalidated = false;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::map<std::shared_ptr<Stream>, std::vector<GraphNode*>>
      members;  // stream -> what its next operation needs
};

namespace {

// Captures are rare: one mutex guards all of their state.
struct Captures {
  std::mutex mutex;
  std::vector<std::shared_ptr<Capture>> active;
  unsigned long long next_id = 1;
};

Captures& captures() {
  static Captures* const kCaptures = new Captures;
  return *kCaptures;
}

std::atomic<int> active_count{0};

thread_local CaptureMode thread_mode = CaptureMode::kGlobal;

// The mutex is held in all of these.

std::shared_ptr<Capture> capture_of(Stream& stream) {
  const std::shared_ptr<Stream> shared = stream.shared_from_this();
  for (const std::shared_ptr<Capture>& capture : captures().active) {
    if (capture->members.count(shared) != 0) return capture;
  }
  return nullptr;
}

bool forbids_unsafe_calls(const Capture& capture) {
  if (capture.owner == std::this_thread::get_id()) return capture.mode != CaptureMode::kRelaxed;
  return thread_mode == CaptureMode::kGlobal && capture.mode == CaptureMode::kGlobal;
}

void add_tips(std::vector<GraphNode*>* tips, const std::vector<GraphNode*>& more) {
  for (GraphNode* node : more) {
    if (std::find(tips->begin(), tips->end(), node) == tips->end()) tips->push_back(node);
  }
}

// Whether all work of the streams that joined is waited for by the origin.
bool joined(const Capture& capture) {
  const auto reached = Graph::closure(capture.members.at(capture.origin));
  for (const auto& [stream, tips] : capture.members) {
    for (const GraphNode* tip : tips) {
      if (reached.count(tip) == 0) return false;
    }
  }
  return true;
}

void forget(const std::shared_ptr<Capture>& capture) {
  for (const auto& member : capture->members) member.first->capturing = false;
  std::erase(captures().active, capture);
  --active_count;
}

}  // namespace

Error begin_capture(Stream& stream, CaptureMode mode) {
  if (stream.legacy) return kCaptureUnsupported;
  std::lock_guard<std::mutex> lock(captures().mutex);
  if (stream.capturing) return kIllegalState;
  auto capture = std::make_shared<Capture>(stream.shared_from_this(), mode, captures().next_id++);
  capture->members[capture->origin] = {};
  captures().active.push_back(std::move(capture));
  ++active_count;
  stream.capturing = true;
  return kSuccess;
}

Error end_capture(Stream& stream, Graph** graph) {
  *graph = nullptr;
  std::lock_guard<std::mutex> lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(stream);
  if (capture == nullptr) return kIllegalState;
  if (capture->origin.get() != &stream) {
    capture->invalidated = true;
    return kCaptureUnmatched;
  }
  if (capture->mode != CaptureMode::kRelaxed && capture->owner != std::this_thread::get_id()) {
    return kCaptureWrongThread;
  }
  forget(capture);
  if (capture->invalidated) return kCaptureInvalidated;
  if (!joined(*capture)) return kCaptureUnjoined;
  *graph = capture->graph.release();
  return kSuccess;
}

CaptureInfo capture_info(Stream& stream) {
  CaptureInfo info;
  if (!stream.capturing) return info;
  std::lock_guard<std::mutex> lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(stream);
  if (capture == nullptr) return info;
  info.status = capture->invalidated ? CaptureStatus::kInvalidated : CaptureStatus::kActive;
  info.id = capture->id;
  info.graph = capture->graph.get();
  info.tips = capture->members.at(stream.shared_from_this());
  return info;
}

Error set_capture_tips(Stream& stream, const std::vector<GraphNode*>& tips, bool add) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(stream);
  if (capture == nullptr) return kIllegalState;
  if (capture->invalidated) return kCaptureInvalidated;
  std::vector<GraphNode*>& own = capture->members.at(stream.shared_from_this());
  if (!add) own.clear();
  add_tips(&own, tips);
  return kSuccess;
}

Error capture_operation(Stream& stream, Operation operation, Run run) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(stream);
  if (capture == nullptr) return kCaptureInvalidated;  // it ended between the caller's look and now
  if (capture->invalidated) return kCaptureInvalidated;
  std::vector<GraphNode*>& tips = capture->members.at(stream.shared_from_this());
  tips = {capture->graph->add(std::move(operation), run, tips)};
  return kSuccess;
}

Error check_unsafe_call() {
  if (active_count.load() == 0 || thread_mode == CaptureMode::kRelaxed) return kSuccess;
  std::lock_guard<std::mutex> lock(captures().mutex);
  bool forbidden = false;
  for (const std::shared_ptr<Capture>& capture : captures().active) {
    if (!forbids_unsafe_calls(*capture)) continue;
    capture->invalidated = true;
    forbidden = true;
  }
  return forbidden ? kCaptureUnsupported : kSuccess;
}

Error check_stream_not_captured(Stream& stream) {
  if (stream.legacy) return check_legacy_use(stream, true);
  if (!stream.capturing) return kSuccess;
  std::lock_guard<std::mutex> lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(stream);
  if (capture == nullptr) return kSuccess;
  const bool was_invalid = std::exchange(capture->invalidated, true);
  return was_invalid ? kCaptureInvalidated : kCaptureUnsupported;
}

Error check_legacy_use(const Stream& stream, bool invalidate) {
  if (active_count.load() == 0 || !stream.legacy) return kSuccess;
  std::lock_guard<std::mutex> lock(captures().mutex);
  bool implicit = false;
  for (const std::shared_ptr<Capture>& capture : captures().active) {
    const bool concerned =
        std::any_of(capture->members.begin(), capture->members.end(), [&stream](const auto& member) {
          return member.first->device == stream.device && member.first->blocking();
        });
    if (!concerned) continue;
    if (invalidate) capture->invalidated = true;
    implicit = true;
  }
  return implicit ? kCaptureImplicit : kSuccess;
}

CaptureMode exchange_capture_mode(CaptureMode mode) { return std::exchange(thread_mode, mode); }

Error record_in_capture(Stream& stream, CapturedPlace* place) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(stream);
  if (capture == nullptr || capture->invalidated) return kCaptureInvalidated;
  place->capture = capture;
  place->tips = capture->members.at(stream.shared_from_this());
  place->set = true;
  return kSuccess;
}

Error wait_in_capture(Stream& stream, const CapturedPlace& place) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  const std::shared_ptr<Capture> capture = place.capture.lock();
  const bool active =
      capture != nullptr && capture->graph != nullptr &&
      std::find(captures().active.begin(), captures().active.end(), capture) != captures().active.end();
  if (!active) return kCapturedEvent;
  if (capture->invalidated) return kCaptureInvalidated;
  if (stream.legacy) {
    capture->invalidated = true;
    return kCaptureImplicit;
  }
  const std::shared_ptr<Capture> own = capture_of(stream);
  if (own != nullptr && own != capture) {
    own->invalidated = true;
    capture->invalidated = true;
    return kCaptureMerge;
  }
  add_tips(&capture->members[stream.shared_from_this()], place.tips);
  stream.capturing = true;
  return kSuccess;
}

Error refuse_uncaptured_wait(Stream& stream) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(stream);
  if (capture == nullptr) return kSuccess;
  const bool was_invalid = std::exchange(capture->invalidated, true);
  return was_invalid ? kCaptureInvalidated : kCaptureIsolation;
}

Error refuse_captured_event(const CapturedPlace& place) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  if (const std::shared_ptr<Capture> capture = place.capture.lock()) capture->invalidated = true;
  return kCapturedEvent;
}

}  // namespace simgpu
