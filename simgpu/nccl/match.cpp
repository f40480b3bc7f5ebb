#include "simgpu/nccl/match.h"

#include <cinttypes>

#include "simgpu/core/log.h"
#include "simgpu/nccl/collective.h"
#include "simgpu/nccl/options.h"

namespace simgpu::nccl {

Match::Match(Comm& comm, const CallShape& shape, uint64_t call)
    : comm_(comm),
      shape_(shape),
      call_(call),
      lenient_(options().mismatch_completes > 0 && bytes(shape) <= options().mismatch_completes),
      seen_(comm.size(), false),
      unseen_(comm.size()) {}

size_t Match::bytes(const CallShape& shape) const { return shape.count * element_bytes(shape.type); }

const CallShape& Match::shape_of(int rank) const {
  return comm_.segment().member(rank).shapes[call_ % kWindow];
}

bool Match::untouched(int rank) const { return comm_.segment().member(rank).all_untouched[call_ % kWindow]; }

bool Match::post(bool untouched) {
  const bool room = comm_.until([&] {
    for (int rank = 0; rank < comm_.size(); ++rank) {
      if (comm_.segment().member(rank).done.load() + kWindow < call_) return false;
    }
    return true;
  });
  if (!room) return false;
  comm_.self().shapes[call_ % kWindow] = shape_;
  comm_.self().all_untouched[call_ % kWindow] = untouched;
  comm_.self().posted.store(call_);
  comm_.bell().ring();
  return true;
}

Match::Agreement Match::look() {
  for (int rank = 0; rank < comm_.size() && unseen_ > 0; ++rank) {
    if (seen_[rank] || comm_.segment().member(rank).posted.load() < call_) continue;
    seen_[rank] = true;
    --unseen_;
    if (shape_of(rank) == shape_) continue;
    other_ = rank;
    if (!lenient_) return Agreement::kNone;
  }
  if (other_ < 0) return Agreement::kSoFar;
  // Every member must come to the same result, so it is decided on all calls together.
  if (!seen_all()) return Agreement::kSoFar;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (bytes(shape_of(rank)) > options().mismatch_completes) return Agreement::kNone;
  }
  return Agreement::kCompletesAnyhow;
}

void Match::report() const {
  const CallShape& theirs = shape_of(other_);
  log(1,
      "communicator %016" PRIx64 " call %" PRIu64 ": rank %d %s of %" PRIu64 ", rank %d %s of %" PRIu64
      "; this never completes",
      comm_.id(), call_, comm_.rank(), kind_name(shape_.kind), shape_.count, other_, kind_name(theirs.kind),
      theirs.count);
  const auto side = [](char* out, size_t bytes, int rank, const CallShape& shape) {
    snprintf(out, bytes,
             "{\"rank\": %d, \"op\": \"%s\", \"count\": %" PRIu64
             ", \"dtype\": %d, \"reduce_op\": %d, "
             "\"root\": %d}",
             rank, kind_name(shape.kind), shape.count, shape.type, shape.reduce_op, shape.root);
  };
  char mine[160];
  char other[160];
  side(mine, sizeof mine, comm_.rank(), shape_);
  side(other, sizeof other, other_, theirs);
  tell_oracle("{\"what\": \"hang\", \"comm\": \"%016" PRIx64 "\", \"call\": %" PRIu64
              ", \"mine\": %s, \"theirs\": %s}",
              comm_.id(), call_, mine, other);
}

}  // namespace simgpu::nccl
