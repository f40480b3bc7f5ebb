#include "simgpu/tensor/work.h"

#include <cstring>
#include <limits>

#include "simgpu/nccl/floats.h"

namespace simgpu::tensor {
namespace {

// Elements are computed with as 64-bit integers that wrap, and cut to their type when they are stored: what
// the narrower types come to as well.
template <class T>
int64_t load_as(const char* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return static_cast<int64_t>(value);
}

template <class T>
void store_as(char* place, int64_t value) {
  const T narrow = static_cast<T>(value);
  std::memcpy(place, &narrow, sizeof narrow);
}

size_t bytes_of(int32_t type) {
  static constexpr size_t kBytes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kBytes[type];
}

int64_t load(const char* place, int32_t type) {
  switch (type) {
    case kBool:
      return *place != 0;
    case kUint8:
      return load_as<uint8_t>(place);
    case kInt8:
      return load_as<int8_t>(place);
    case kInt16:
      return load_as<int16_t>(place);
    case kInt32:
      return load_as<int32_t>(place);
    default:
      return load_as<int64_t>(place);
  }
}

void store(char* place, int32_t type, int64_t value) {
  switch (type) {
    case kFloat16:
      return store_as<_Float16>(place, value);
    case kBfloat16: {
      const uint16_t bits = nccl::to_bfloat16(static_cast<float>(value));
      std::memcpy(place, &bits, sizeof bits);
      return;
    }
    case kFloat32:
      return store_as<float>(place, value);
    case kFloat64:
      return store_as<double>(place, value);
    case kBool:
      *place = value != 0;
      return;
    case kUint8:
      return store_as<uint8_t>(place, value);
    case kInt8:
      return store_as<int8_t>(place, value);
    case kInt16:
      return store_as<int16_t>(place, value);
    case kInt32:
      return store_as<int32_t>(place, value);
    default:
      return store_as<int64_t>(place, value);
  }
}

int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

// A division by zero is undefined in C++; on the device it gives all ones.
int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return -1;
  if (b == -1) return wrapped(0 - static_cast<uint64_t>(a));
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t remainder(int64_t a, int64_t b) {
  if (b == 0) return -1;
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t negate(int64_t a) { return wrapped(0 - static_cast<uint64_t>(a)); }

// Also how reductions go on: `a` is what they have so far.
int64_t combine(int32_t code, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a);
  const uint64_t y = static_cast<uint64_t>(b);
  switch (code) {
    case kAdd:
    case kSum:
    case kCumulativeSum:
      return wrapped(x + y);
    case kSubtract:
      return wrapped(x - y);
    case kMultiply:
    case kProduct:
      return wrapped(x * y);
    case kFloorDivide:
      return floor_divide(a, b);
    case kRemainder:
      return remainder(a, b);
    case kMaximum:
    case kLargest:
      return a > b ? a : b;
    case kMinimum:
    case kSmallest:
      return a < b ? a : b;
    case kBitwiseAnd:
      return a & b;
    case kBitwiseOr:
      return a | b;
    case kBitwiseXor:
      return a ^ b;
    case kLogicalAnd:
    case kAll:
      return (a != 0) && (b != 0);
    case kLogicalOr:
    case kAny:
      return (a != 0) || (b != 0);
    case kLogicalXor:
      return (a != 0) != (b != 0);
    case kEqual:
      return a == b;
    case kNotEqual:
      return a != b;
    case kLess:
      return a < b;
    case kLessEqual:
      return a <= b;
    case kGreater:
      return a > b;
    case kGreaterEqual:
      return a >= b;
    default:
      return 0;
  }
}

int64_t of_one(int32_t code, int64_t a) {
  switch (code) {
    case kNegate:
      return negate(a);
    case kAbsolute:
      return a < 0 ? negate(a) : a;
    case kBitwiseNot:
      return ~a;
    case kLogicalNot:
      return a == 0;
    default:
      return a;
  }
}

bool reduces(int32_t code) { return code >= kSum && code <= kSmallest; }

bool is_signed(int32_t type) { return type >= kInt8; }

int64_t lowest(int32_t type) {
  return is_signed(type) ? std::numeric_limits<int64_t>::min() >> (64 - 8 * bytes_of(type)) : 0;
}

int64_t highest(int32_t type) {
  if (type == kBool) return 1;
  return std::numeric_limits<int64_t>::max() >> (64 - 8 * bytes_of(type) - (is_signed(type) ? 0 : 1));
}

// What a reduction begins with.
int64_t identity(int32_t code, int32_t type) {
  switch (code) {
    case kProduct:
    case kAll:
      return 1;
    case kLargest:
      return lowest(type);
    case kSmallest:
      return highest(type);
    default:
      return 0;
  }
}

// Goes through the places of all operands, the last dimension fastest.
class Walk {
 public:
  explicit Walk(const Work& work) : work_(work) {}

  bool empty() const {
    for (int dim = 0; dim < work_.dims; ++dim) {
      if (work_.sizes[dim] == 0) return true;
    }
    return false;
  }

  // False: this was the last one.
  bool next() {
    for (int dim = work_.dims - 1; dim >= 0; --dim) {
      if (++index_[dim] < work_.sizes[dim]) return true;
      index_[dim] = 0;
    }
    return false;
  }

  bool at_beginning_of_row() const { return work_.dims == 0 || index_[work_.dims - 1] == 0; }

  char* place(const Operand& operand) const {
    int64_t offset = 0;
    for (int dim = 0; dim < work_.dims; ++dim) offset += index_[dim] * operand.strides[dim];
    return operand.data + offset * static_cast<int64_t>(bytes_of(operand.type));
  }

  int64_t value(const Operand& operand) const {
    return operand.data != nullptr ? load(place(operand), operand.type) : operand.scalar;
  }

  void put(int64_t value) const { store(place(work_.out), work_.out.type, value); }

 private:
  const Work& work_;
  int64_t index_[kMostDims] = {};
};

int64_t element(const Work& work, const Walk& walk) {
  const int64_t first = walk.value(work.in[0]);
  if (work.code == kWhere) return walk.value(work.in[first != 0 ? 1 : 2]);
  return work.inputs == 1 ? of_one(work.code, first) : combine(work.code, first, walk.value(work.in[1]));
}

void execute_elements(const Work& work) {
  Walk walk(work);
  do walk.put(element(work, walk));
  while (walk.next());
}

void execute_reduction(const Work& work) {
  Walk start(work);
  do start.put(identity(work.code, work.out.type));
  while (start.next());
  Walk walk(work);
  do walk.put(combine(work.code, walk.value(work.out), walk.value(work.in[0])));
  while (walk.next());
}

void execute_cumulative(const Work& work) {
  Walk walk(work);
  int64_t so_far = 0;
  do {
    so_far = combine(work.code, walk.at_beginning_of_row() ? 0 : so_far, walk.value(work.in[0]));
    walk.put(so_far);
  } while (walk.next());
}

}  // namespace

bool valid(const Work& work) {
  if (work.code < 0 || work.code >= kCodes || work.dims < 0 || work.dims > kMostDims) return false;
  const int wanted = work.code == kWhere ? 3 : work.code >= kAdd && work.code < kWhere ? 2 : 1;
  if (work.inputs != wanted || work.out.data == nullptr) return false;
  if (work.out.type < 0 || work.out.type >= (work.code == kCopy ? kTypes : kFloat16)) return false;
  for (int i = 0; i < work.inputs; ++i) {
    if (work.in[i].type < 0 || work.in[i].type >= kFloat16) return false;
  }
  return true;
}

void execute(const Work& work) {
  if (Walk(work).empty()) return;
  if (reduces(work.code)) return execute_reduction(work);
  if (work.code == kCumulativeSum) return execute_cumulative(work);
  execute_elements(work);
}

}  // namespace simgpu::tensor
