// The names that PyTorch's Flight Recorder uses for operations and types, and ours for the same.
//
// Operations: profiling names of ProcessGroupNCCL, without the backend before the colon; types:
// c10::toString(ScalarType).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/flight/format.h"

namespace dshang::job {

// Which of an operation's sizes NCCL counts as `count` (ncclAllGather: what a rank gives; ncclReduceScatter:
// what it gets).
enum class CountedSize {
  kInput,
  kOutput,
  kNone,  // ranks may differ in it by right
};

struct RecorderOp {
  std::string_view name;  // ours; where it is not known, the recorder's own
  std::uint32_t traits = 0;
  CountedSize counted = CountedSize::kInput;
};

// `name`: without backend and peer: "_all_gather_base", "send".
RecorderOp op_of_recorder(std::string_view name);

// The recorder's name of an operation of ours; "" where it has none.
std::string_view recorder_op(std::string_view op);

flight::DType dtype_of_recorder(std::string_view name);
std::string_view recorder_dtype(flight::DType dtype);  // "Undefined" for none

}  // namespace dshang::job
