#include "interpose/comms/identity.h"

#include "core/flight/hash.h"

namespace dshang::interpose::comms {
namespace {

enum class Sort : std::uint64_t { kInit = 1, kInitAll, kSplit, kShrink, kGrow, kUnknown };

template <typename... Words>
std::uint64_t hash(Sort sort, Words... words) {
  std::uint64_t value = flight::mix(flight::kFnvOffset, static_cast<std::uint64_t>(sort));
  ((value = flight::mix(value, static_cast<std::uint64_t>(words))), ...);
  return value ? value : 1;  // 0 means: a split without colour
}

}  // namespace

std::uint64_t init_id(const abi::UniqueId& unique_id, int size, std::uint32_t repeat) {
  return hash(Sort::kInit, flight::fnv1a(unique_id.bytes, sizeof unique_id.bytes), size, repeat);
}

std::uint64_t nccl_hash(const abi::UniqueId& unique_id) {
  std::uint64_t value = 5381;
  for (char byte : unique_id.bytes) value = (value * 33) ^ static_cast<std::uint64_t>(byte);
  return value;
}

std::uint64_t init_all_id(std::uint64_t process, std::uint32_t ordinal, int size) {
  return hash(Sort::kInitAll, process, ordinal, size);
}

std::uint64_t split_id(std::uint64_t parent, std::uint64_t ordinal, int color) {
  return color == abi::kNoColor ? 0 : hash(Sort::kSplit, parent, ordinal, color);
}

std::uint64_t shrink_id(std::uint64_t parent, std::uint64_t ordinal, const int* excluded, int excluded_count) {
  std::uint64_t sum = 0;
  for (int i = 0; excluded && i < excluded_count; ++i) sum += hash(Sort::kShrink, excluded[i]);
  return hash(Sort::kShrink, parent, ordinal, sum, excluded_count);
}

std::uint64_t grow_id(std::uint64_t parent, std::uint64_t ordinal, int size) {
  return hash(Sort::kGrow, parent, ordinal, size);
}

std::uint64_t unknown_id(std::uint64_t process, std::uint64_t handle, std::uint32_t ordinal) {
  return hash(Sort::kUnknown, process, handle, ordinal);
}

}  // namespace dshang::interpose::comms
