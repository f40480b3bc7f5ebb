// Whether the members' calls agree.
#pragma once

#include <vector>

#include "simgpu/nccl/comm.h"

namespace simgpu::nccl {

class Match {
 public:
  enum class Agreement {
    kSoFar,            // all that have come agree
    kNone,             // at least one does not: this call never completes
    kCompletesAnyhow,  // they do not agree, and SIMNCCL_MISMATCH_COMPLETES lets them through
  };

  Match(Comm& comm, const CallShape& shape, uint64_t call);

  // Publishes this member's call, and whether what it gives was never written. Waits while it is kWindow
  // calls ahead of the slowest member; false: stopped.
  bool post(bool untouched);

  // Compares with the members that have come since the last look.
  Agreement look();

  // Whether the call of this member, or of all, has been compared.
  bool seen(int rank) const { return seen_[rank]; }
  bool seen_all() const { return unseen_ == 0; }

  // What a member has published, once it was seen.
  bool untouched(int rank) const;

  // SIMNCCL_MISMATCH_COMPLETES applies to this call: nothing may be moved before all have come.
  bool wait_for_all() const { return lenient_; }

  // Tells the oracle what did not agree.
  void report() const;

 private:
  size_t bytes(const CallShape& shape) const;
  const CallShape& shape_of(int rank) const;

  Comm& comm_;
  const CallShape shape_;
  const uint64_t call_;
  const bool lenient_;
  std::vector<bool> seen_;
  int unseen_;
  int other_ = -1;  // a member that disagrees
};

}  // namespace simgpu::nccl
