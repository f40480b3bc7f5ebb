// How the data of a collective get from member to member: chunks in the members' rings.
//
// A chunk covers the elements [chunk * elements_per_chunk, ...) of every block that its writer has: one
// block, or one for every member (then they lie one behind the other in the slot).
//
// Kernels never write, so most data of a dry run were never touched. Where no member whose data are needed
// has any, no chunk is made at all.
#pragma once

#include <vector>

#include "simgpu/nccl/collective.h"
#include "simgpu/nccl/match.h"

namespace simgpu::nccl {

class Exchange {
 public:
  Exchange(Comm& comm, const Collective& collective);

  // What this member gives was never written.
  bool untouched() const { return untouched_; }

  // Moves what can be moved now. True when this member has nothing more to do. What is needed of other
  // members waits until `match` has seen their calls.
  bool step(const Match& match);

 private:
  void account();
  bool writes(int rank) const { return reads_send(collective_.shape, rank); }  // has a block to give
  bool reads_from(int writer) const;
  bool needs_all() const;
  bool may_be_empty() const;
  bool empty(const Match& match) const;
  void read_zeros();

  uint64_t chunk_elements(uint64_t chunk) const;
  bool slot_free(uint64_t chunk);
  void write(uint64_t chunk);
  bool readable(uint64_t chunk);
  void read(uint64_t chunk);
  void reduce_chunk(uint64_t chunk, size_t elements);
  void copy_chunk(uint64_t chunk, int writer, size_t elements);

  // The writer's block for this member; nullptr: all zeros.
  const char* block(int writer, uint64_t chunk, size_t elements);
  uint64_t ring_chunk(int writer, uint64_t chunk) const { return comm_.chunks_before()[writer] + chunk; }

  Comm& comm_;
  const Collective& collective_;
  const size_t element_;      // bytes
  const uint64_t per_chunk_;  // elements of a block in one chunk
  const uint64_t moved_;      // elements of a block that are moved (SIMNCCL_DATA_CAP)
  const uint64_t chunks_;
  const bool untouched_;
  std::vector<const char*> sources_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;
  bool skipped_ = false;  // the rings that this member does not read are marked as read
};

}  // namespace simgpu::nccl
