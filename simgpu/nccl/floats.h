// Conversion of the small floating point types.
#pragma once

#include <cstdint>
#include <cstring>

namespace simgpu::nccl {

inline float from_bfloat16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

// Rounds to nearest even; a NaN stays one.
inline uint16_t to_bfloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The two 8-bit formats of the OCP specification "8-bit floating point" 1.0. E4M3 has no infinity; conversion
// to them saturates, which is what CUDA's do by default.
float from_float8e4m3(uint8_t value);
float from_float8e5m2(uint8_t value);
uint8_t to_float8e4m3(float value);
uint8_t to_float8e5m2(float value);

}  // namespace simgpu::nccl
