// Hashes that must be equal in every process and on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dshang::flight {

inline constexpr std::uint64_t kFnvOffset = 14695981039346656037ull;
inline constexpr std::uint64_t kFnvPrime = 1099511628211ull;

// FNV-1a over bytes (http://www.isthe.com/chongo/tech/comp/fnv/).
inline std::uint64_t fnv1a(const void* bytes, std::size_t length, std::uint64_t hash = kFnvOffset) {
  const unsigned char* at = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < length; ++i) hash = (hash ^ at[i]) * kFnvPrime;
  return hash;
}

// Mixes one word into a hash; a whole word at a time, for the recorded path.
inline std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}

}  // namespace dshang::flight
