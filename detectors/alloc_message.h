// What torch's own out-of-memory message says of its allocator.  Its wording
// (c10/cuda/CUDACachingAllocator.cpp): since 2.1 "Of the allocated memory 50.00 GiB is allocated by PyTorch,
// and 9.00 GiB is reserved by PyTorch but unallocated.", before "60.00 GiB already allocated; ... 70.00 GiB
// reserved in total by PyTorch".  Since 2.0 it also names the processes on the card, as NVML does: "Process 4711
// has 9.00 GiB memory in use. Including non-PyTorch memory, this process has 5.20 GiB memory in use."
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace dshang::detect {

struct AllocatorState {
  std::uint64_t allocated = 0, reserved = 0;  // bytes, as exact as the message is
  std::uint64_t unused() const { return reserved > allocated ? reserved - allocated : 0; }
};

// Nothing where the message is of another kind.
std::optional<AllocatorState> allocator_state_in(std::string_view message);

struct CardUser {
  std::int64_t pid = 0;  // where NVML sees it: in a container not the number that it has inside
  std::uint64_t bytes = 0;
};

// The processes on the card beside the one that asked.
std::vector<CardUser> other_users_in(std::string_view message);

}  // namespace dshang::detect
