// Small integer work on tensors, in the order of a stream.
//
// Kernels do nothing on the simulated device; but sizes, masks and token counts have to be right, and
// computing them in the caller would wait for the stream, where hardware would not. So the numerics shim
// (../python) describes an operation here, and it is executed when the stream comes to it, as a kernel would
// be. In a capture it becomes a node of the graph.
//
// The structures are read by simgpu_numerics/queued.py.
#pragma once

#include <cstdint>

namespace simgpu::tensor {

inline constexpr int kMostDims = 8;
inline constexpr int kMostInputs = 3;

// Those behind kInt64 are written by kCopy only.
enum Type : int32_t {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kTypes
};

// One tensor, or where `data` is nullptr the number `scalar`. Sizes and strides count elements.
struct Operand {
  char* data;
  int64_t scalar;
  int64_t strides[kMostDims];
  int32_t type;
};

enum Code : int32_t {
  // element by element
  kCopy,
  kNegate,
  kAbsolute,
  kBitwiseNot,
  kLogicalNot,
  kAdd,
  kSubtract,
  kMultiply,
  kFloorDivide,
  kRemainder,
  kMaximum,
  kMinimum,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kWhere,  // inputs: condition, then, else
  // all elements that share a place of the output into that place
  kSum,
  kProduct,
  kAny,
  kAll,
  kLargest,
  kSmallest,
  // along the last dimension
  kCumulativeSum,
  kCodes,
};

// All operands have these sizes; one that is smaller is repeated by strides of 0.
struct Work {
  int32_t code;
  int32_t dims;
  int32_t inputs;
  int64_t sizes[kMostDims];
  Operand out;
  Operand in[kMostInputs];
};

bool valid(const Work& work);

void execute(const Work& work);

}  // namespace simgpu::tensor
