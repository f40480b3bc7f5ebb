#include "detectors/own_call.h"

#include <algorithm>

#include "core/job/site_policy.h"

namespace dshang::detect {
namespace {

bool holds(std::string_view file, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return file.find(part) != file.npos; });
}

}  // namespace

bool is_own_call(const JobView& view, const job::Call& call) {
  if (!call.site) return false;
  const job::Names& names = view.names();
  bool is_distributed = false;
  for (const job::FrameName& frame : names.site(call.site).frames) {
    const std::string& file = names.text(frame.file);
    job::FrameOwner owner = job::frame_owner(file);
    if (owner == job::FrameOwner::kUser || owner == job::FrameOwner::kLibrary) break;
    if (owner == job::FrameOwner::kGlue) continue;
    if (holds(file, {"torch/distributed/fsdp/", "torch/distributed/_composable/", "torch/nn/", "deepspeed/runtime/"})) return false;
    is_distributed = is_distributed || holds(file, {"torch/distributed/distributed_c10d.py", "deepspeed/comm/"});
  }
  return is_distributed;
}

}  // namespace dshang::detect
