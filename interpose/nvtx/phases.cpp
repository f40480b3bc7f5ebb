#include "interpose/nvtx/phases.h"

#include <string.h>

#include <cstddef>

namespace dshang::nvtx {
namespace {

// A name fits that is `function`, or ends in it behind a dot or an underscore
// (DeepSpeedZeroOptimizer_Stage3.step). Source: the functions that DeepSpeed 0.19.8 decorates with
// instrument_w_nvtx (runtime/engine.py, runtime/zero/stage3.py, runtime/zero/parameter_offload.py); the same
// names since 0.10.
struct Row {
  const char* function;
  const char* phase;
};
constexpr Row kRows[] = {
    {"DeepSpeedEngine.forward", "forward"},
    {"DeepSpeedEngine.backward", "backward"},
    {"DeepSpeedEngine.allreduce_gradients", "backward"},
    {"Stage3.step", "optimizer"},
    // On PyTorch's backward thread, also where the program calls loss.backward() itself.
    {"_run_before_backward_function", "backward"},
    {"reduce_partition_and_remove_grads", "backward"},
    {"independent_gradient_partition_epilogue", "backward"},
};

constexpr std::size_t kLongest = 256;  // of a wide name

bool fits(const char* name, std::size_t length, const char* function) {
  std::size_t wanted = strlen(function);
  if (length < wanted || memcmp(name + length - wanted, function, wanted) != 0) return false;
  if (length == wanted) return true;
  char before = name[length - wanted - 1];
  return before == '.' || before == '_';
}

}  // namespace

const char* phase_of(RangeDomain domain, const char* name) {
  if (!name) return nullptr;
  std::size_t length = strlen(name);
  for (const Row& row : kRows) {
    if (fits(name, length, row.function)) return row.phase;
  }
  // ZenFlow's is a plain function; a program's own range of that name is something else.
  return domain == RangeDomain::kDeepSpeed && strcmp(name, "step") == 0 ? "optimizer" : nullptr;
}

const char* phase_of(RangeDomain domain, const wchar_t* name) {
  if (!name) return nullptr;
  char narrow[kLongest];
  for (std::size_t i = 0; i < kLongest; ++i) {
    if (name[i] < 0 || name[i] > 127) return nullptr;
    narrow[i] = static_cast<char>(name[i]);
    if (!narrow[i]) return phase_of(domain, narrow);
  }
  return nullptr;
}

}  // namespace dshang::nvtx
