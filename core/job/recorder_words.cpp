#include "core/job/recorder_words.h"

namespace dshang::job {
namespace {

using flight::DType;

constexpr std::uint32_t kReducing = flight::kOpCollective | flight::kOpReduces;

struct Known {
  std::string_view recorder;
  RecorderOp op;
};

// The first of several recorder's names is the one that is written.
constexpr Known kOps[] = {
    {"_all_gather_base", {"all_gather", flight::kOpCollective, CountedSize::kInput}},
    {"all_gather", {"all_gather", flight::kOpCollective, CountedSize::kInput}},
    {"all_gather_single", {"all_gather", flight::kOpCollective, CountedSize::kInput}},
    {"all_gather_into_tensor_coalesced", {"all_gather", flight::kOpCollective, CountedSize::kInput}},
    {"_reduce_scatter_base", {"reduce_scatter", kReducing, CountedSize::kOutput}},
    {"reduce_scatter", {"reduce_scatter", kReducing, CountedSize::kOutput}},
    {"reduce_scatter_single", {"reduce_scatter", kReducing, CountedSize::kOutput}},
    {"reduce_scatter_tensor_coalesced", {"reduce_scatter", kReducing, CountedSize::kOutput}},
    {"all_reduce", {"all_reduce", kReducing, CountedSize::kInput}},
    {"allreduce_coalesced", {"all_reduce", kReducing, CountedSize::kInput}},
    {"all_reduce_barrier", {"barrier", flight::kOpCollective, CountedSize::kNone}},
    {"barrier", {"barrier", flight::kOpCollective, CountedSize::kNone}},
    {"broadcast", {"broadcast", flight::kOpCollective | flight::kOpRooted, CountedSize::kInput}},
    {"_broadcast_oop", {"broadcast", flight::kOpCollective | flight::kOpRooted, CountedSize::kInput}},
    {"reduce", {"reduce", kReducing | flight::kOpRooted, CountedSize::kInput}},
    {"_reduce_oop", {"reduce", kReducing | flight::kOpRooted, CountedSize::kInput}},
    {"all_to_all", {"all_to_all", flight::kOpCollective, CountedSize::kNone}},
    {"all_to_all_single", {"all_to_all", flight::kOpCollective, CountedSize::kNone}},
    {"all_to_all_v_single", {"all_to_all", flight::kOpCollective, CountedSize::kNone}},
    {"gather", {"gather", flight::kOpCollective | flight::kOpRooted, CountedSize::kInput}},
    {"gather_single", {"gather", flight::kOpCollective | flight::kOpRooted, CountedSize::kInput}},
    {"scatter", {"scatter", flight::kOpCollective | flight::kOpRooted, CountedSize::kOutput}},
    {"send", {"send", flight::kOpSend, CountedSize::kInput}},
    {"recv", {"recv", flight::kOpRecv, CountedSize::kOutput}},
};

struct Type {
  std::string_view recorder;
  DType dtype;
};

// NCCL moves a Bool as a byte.
constexpr Type kTypes[] = {
    {"Float", DType::kF32},
    {"BFloat16", DType::kBF16},
    {"Half", DType::kF16},
    {"Double", DType::kF64},
    {"Long", DType::kI64},
    {"Int", DType::kI32},
    {"Byte", DType::kU8},
    {"Bool", DType::kU8},
    {"Char", DType::kI8},
    {"UInt32", DType::kU32},
    {"UInt64", DType::kU64},
    {"Float8_e4m3fn", DType::kF8E4M3},
    {"Float8_e5m2", DType::kF8E5M2},
};

}  // namespace

RecorderOp op_of_recorder(std::string_view name) {
  for (const Known& known : kOps) {
    if (known.recorder == name) return known.op;
  }
  return {name, flight::kOpCollective, CountedSize::kNone};
}

std::string_view recorder_op(std::string_view op) {
  for (const Known& known : kOps) {
    if (known.op.name == op) return known.recorder;
  }
  return {};
}

DType dtype_of_recorder(std::string_view name) {
  for (const Type& type : kTypes) {
    if (type.recorder == name) return type.dtype;
  }
  return DType::kUnknown;
}

std::string_view recorder_dtype(DType dtype) {
  for (const Type& type : kTypes) {
    if (type.dtype == dtype) return type.recorder;
  }
  return "Undefined";
}

}  // namespace dshang::job
