#include "simgpu/nccl/floats.h"

#include <cmath>
#include <limits>

namespace simgpu::nccl {
namespace {

struct Format {
  int mantissa_bits;
  int bias;
  float largest;
  uint8_t nan;
};

constexpr Format kE4m3{3, 7, 448.0f, 0x7f};
constexpr Format kE5m2{2, 15, 57344.0f, 0x7f};

float decode(uint8_t value, const Format& format) {
  const int mantissa = value & ((1 << format.mantissa_bits) - 1);
  const int exponent = (value & 0x7f) >> format.mantissa_bits;
  const float magnitude =
      exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - format.bias - format.mantissa_bits)
                    : std::ldexp(static_cast<float>(mantissa + (1 << format.mantissa_bits)),
                                 exponent - format.bias - format.mantissa_bits);
  return value & 0x80 ? -magnitude : magnitude;
}

uint8_t encode(float value, const Format& format) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | format.nan;
  const float magnitude = std::fmin(std::fabs(value), format.largest);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, 0.5 <= f < 1
  int power = magnitude == 0 ? 1 - format.bias : exponent - 1;
  if (power < 1 - format.bias) power = 1 - format.bias;  // subnormal
  // In units of the last place; a carry into the exponent is what adding to the bits does.
  const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - power)));
  const int bits = ((power + format.bias - 1) << format.mantissa_bits) + units;
  return sign | static_cast<uint8_t>(bits);
}

}  // namespace

float from_float8e4m3(uint8_t value) {
  return (value & 0x7f) == kE4m3.nan ? std::numeric_limits<float>::quiet_NaN() : decode(value, kE4m3);
}

float from_float8e5m2(uint8_t value) {
  const int magnitude = value & 0x7f;
  if (magnitude > 0x7c) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude == 0x7c) return value & 0x80 ? -INFINITY : INFINITY;
  return decode(value, kE5m2);
}

uint8_t to_float8e4m3(float value) { return encode(value, kE4m3); }
uint8_t to_float8e5m2(float value) { return encode(value, kE5m2); }

}  // namespace simgpu::nccl
