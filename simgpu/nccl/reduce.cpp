#include "simgpu/nccl/reduce.h"

#include <type_traits>

#include "simgpu/nccl/abi.h"
#include "simgpu/nccl/floats.h"

namespace simgpu::nccl {
namespace {

// An element type: as it is stored, and as it is computed with.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static Value load(Stored stored) { return stored; }
  static Stored store(Value value) { return value; }
};

struct Half {
  using Stored = _Float16;
  using Value = float;
  static Value load(Stored stored) { return static_cast<float>(stored); }
  static Stored store(Value value) { return static_cast<_Float16>(value); }
};

struct Bfloat16 {
  using Stored = uint16_t;
  using Value = float;
  static Value load(Stored stored) { return from_bfloat16(stored); }
  static Stored store(Value value) { return to_bfloat16(value); }
};

struct Float8e4m3 {
  using Stored = uint8_t;
  using Value = float;
  static Value load(Stored stored) { return from_float8e4m3(stored); }
  static Stored store(Value value) { return to_float8e4m3(value); }
};

struct Float8e5m2 {
  using Stored = uint8_t;
  using Value = float;
  static Value load(Stored stored) { return from_float8e5m2(stored); }
  static Stored store(Value value) { return to_float8e5m2(value); }
};

// Calls `body` with the element type that belongs to an NCCL type.
template <class Body>
void with_type(int type, Body&& body) {
  switch (type) {
    case kInt8:
      return body(Plain<int8_t>{});
    case kUint8:
      return body(Plain<uint8_t>{});
    case kInt32:
      return body(Plain<int32_t>{});
    case kUint32:
      return body(Plain<uint32_t>{});
    case kInt64:
      return body(Plain<int64_t>{});
    case kUint64:
      return body(Plain<uint64_t>{});
    case kFloat16:
      return body(Half{});
    case kFloat32:
      return body(Plain<float>{});
    case kFloat64:
      return body(Plain<double>{});
    case kBfloat16:
      return body(Bfloat16{});
    case kFloat8e4m3:
      return body(Float8e4m3{});
    case kFloat8e5m2:
      return body(Float8e5m2{});
    default:
      return;
  }
}

// Signed overflow is undefined in C++; on the device integers wrap.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class T>
T combine(T a, T b, int op) {
  switch (op) {
    case kProd:
      return times(a, b);
    case kMax:
      return a > b ? a : b;
    case kMin:
      return a < b ? a : b;
    default:
      return add(a, b);
  }
}

template <class T>
T divide(T value, int n) {
  if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(value / static_cast<uint64_t>(n));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(value / static_cast<int64_t>(n));
  } else {
    return value / static_cast<T>(n);
  }
}

}  // namespace

void reduce(char* result, const char* const* sources, int n, size_t elements, int type, int op) {
  with_type(type, [&](auto element) {
    using Element = decltype(element);
    using Stored = typename Element::Stored;
    using Value = typename Element::Value;
    const auto read = [&](int source, size_t i) {
      return Element::load(reinterpret_cast<const Stored*>(sources[source])[i]);
    };
    for (size_t i = 0; i < elements; ++i) {
      Value value = read(0, i);
      for (int source = 1; source < n; ++source) value = combine(value, read(source, i), op);
      if (op == kAvg) value = divide(value, n);
      reinterpret_cast<Stored*>(result)[i] = Element::store(value);
    }
  });
}

void multiply(char* values, const char* scalar, size_t elements, int type) {
  with_type(type, [&](auto element) {
    using Element = decltype(element);
    auto* stored = reinterpret_cast<typename Element::Stored*>(values);
    const auto factor = Element::load(*reinterpret_cast<const typename Element::Stored*>(scalar));
    for (size_t i = 0; i < elements; ++i) stored[i] = Element::store(times(Element::load(stored[i]), factor));
  });
}

}  // namespace simgpu::nccl
