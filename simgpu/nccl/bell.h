// How the members of a communicator wait for each other: one counter in shared memory that is rung after
// every change.
//
//   loop { seen = bell.value(); if (what is waited for is there) break; bell.wait(seen); }
//
// loses no change: a ring after value() makes wait() return at once.
#pragma once

#include <cstdint>

#include "simgpu/nccl/segment.h"

namespace simgpu::nccl {

class Bell {
 public:
  explicit Bell(Header& header) : header_(header) {}

  uint32_t value() const { return header_.bell.load(); }
  void ring();

  // Returns when the bell has been rung since `seen` was read, or some time later in any case (a member that
  // was killed between a change and its ring).
  void wait(uint32_t seen);

 private:
  Header& header_;
};

}  // namespace simgpu::nccl
