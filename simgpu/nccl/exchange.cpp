#include "simgpu/nccl/exchange.h"

#include <algorithm>
#include <cstring>

#include "simgpu/core/bytes.h"
#include "simgpu/nccl/options.h"
#include "simgpu/nccl/reduce.h"

namespace simgpu::nccl {
namespace {

constexpr size_t kAskedPerPage =
    16 << 10;  // smaller pieces are copied without asking whether they were touched

// What stands for a chunk that was never written.
alignas(64) const char kZeros[kSlotBytes] = {};

uint64_t elements_moved(const CallShape& shape) {
  const size_t cap = options().data_cap;
  if (cap == 0 || !is_float(shape.type)) return shape.count;
  return std::min<uint64_t>(shape.count, std::max<uint64_t>(1, cap / element_bytes(shape.type)));
}

uint64_t elements_per_chunk(const CallShape& shape, int members) {
  const size_t blocks = send_per_member(shape.kind) ? static_cast<size_t>(members) : 1;
  return std::max<uint64_t>(1, kSlotBytes / element_bytes(shape.type) / blocks);
}

// Whether any byte of what this member gives was ever written; small data are not asked about.
bool never_touched(const Collective& collective, const Comm& comm, uint64_t moved) {
  const CallShape& shape = collective.shape;
  if (!reads_send(shape, comm.rank())) return true;
  const size_t element = element_bytes(shape.type);
  if (moved * element < kAskedPerPage) return false;
  for (int block = 0; block < (send_per_member(shape.kind) ? comm.size() : 1); ++block) {
    if (touched(collective.send + block * shape.count * element, moved * element)) return false;
  }
  return true;
}

bool reduces(uint32_t kind) { return kind == kReduce || kind == kAllReduce || kind == kReduceScatter; }

}  // namespace

Exchange::Exchange(Comm& comm, const Collective& collective)
    : comm_(comm),
      collective_(collective),
      element_(element_bytes(collective.shape.type)),
      per_chunk_(elements_per_chunk(collective.shape, comm.size())),
      moved_(elements_moved(collective.shape)),
      chunks_((moved_ + per_chunk_ - 1) / per_chunk_),
      untouched_(never_touched(collective, comm, moved_)),
      sources_(comm.size()) {}

bool Exchange::reads_from(int writer) const {
  return writes(writer) && writes_receive(collective_.shape, comm_.rank());
}

bool Exchange::needs_all() const {
  return collective_.shape.kind != kBroadcast && collective_.shape.kind != kScatter &&
         writes_receive(collective_.shape, comm_.rank());
}

// Every member must be able to tell without waiting longer than for what it needs anyhow.
bool Exchange::may_be_empty() const {
  return collective_.shape.kind != kReduce && collective_.shape.kind != kGather;
}

// Asked when the members that give something have been seen.
bool Exchange::empty(const Match& match) const {
  if (!may_be_empty()) return false;
  for (int writer = 0; writer < comm_.size(); ++writer) {
    if (writes(writer) && !match.untouched(writer)) return false;
  }
  return true;
}

void Exchange::read_zeros() {
  if (!writes_receive(collective_.shape, comm_.rank())) return;
  for (int block = 0; block < (receive_per_member(collective_.shape.kind) ? comm_.size() : 1); ++block) {
    fill_bytes(collective_.receive + block * collective_.shape.count * element_, 0, moved_ * element_);
  }
}

uint64_t Exchange::chunk_elements(uint64_t chunk) const {
  return std::min(per_chunk_, moved_ - chunk * per_chunk_);
}

bool Exchange::step(const Match& match) {
  if (match.wait_for_all() && !match.seen_all()) return false;
  const bool agreed = needs_all() ? match.seen_all() : match.seen(collective_.shape.root);
  if (agreed && empty(match)) {
    read_zeros();
    return true;
  }
  bool moved = false;
  if (!skipped_) {
    for (int writer = 0; writer < comm_.size(); ++writer) {
      if (!writes(writer) || reads_from(writer)) continue;
      comm_.segment().consumed(comm_.rank(), writer).store(comm_.chunks_before()[writer] + chunks_);
    }
    skipped_ = moved = true;
  }
  // A member with nothing does not write before it knows that another one has something.
  const bool may_write = agreed || !untouched_ || !may_be_empty();
  const uint64_t to_write = writes(comm_.rank()) ? chunks_ : 0;
  const uint64_t to_read = writes_receive(collective_.shape, comm_.rank()) ? chunks_ : 0;
  for (bool progress = true; progress;) {
    progress = false;
    while (may_write && written_ < to_write && slot_free(written_)) {
      write(written_++);
      progress = true;
    }
    if (agreed && read_ < to_read && readable(read_)) {
      read(read_++);
      progress = true;
    }
    moved |= progress;
  }
  if (moved) comm_.bell().ring();
  if (written_ < to_write || read_ < to_read) return false;
  account();
  return true;
}

// Later calls count their chunks from behind this one.
void Exchange::account() {
  for (int writer = 0; writer < comm_.size(); ++writer) {
    if (writes(writer)) comm_.chunks_before()[writer] += chunks_;
  }
}

bool Exchange::slot_free(uint64_t chunk) {
  const uint64_t number = ring_chunk(comm_.rank(), chunk);
  for (int reader = 0; reader < comm_.size(); ++reader) {
    if (comm_.segment().consumed(reader, comm_.rank()).load() + kRingSlots <= number) return false;
  }
  return true;
}

void Exchange::write(uint64_t chunk) {
  const uint64_t number = ring_chunk(comm_.rank(), chunk);
  const size_t bytes = chunk_elements(chunk) * element_;
  const int blocks = send_per_member(collective_.shape.kind) ? comm_.size() : 1;
  const auto piece = [&](int number_of_block) {
    return collective_.send + (number_of_block * collective_.shape.count + chunk * per_chunk_) * element_;
  };
  bool any_touched = bytes < kAskedPerPage;
  for (int b = 0; b < blocks && !any_touched; ++b) any_touched = touched(piece(b), bytes);

  char* slot = comm_.segment().ring_slot(comm_.rank(), number);
  if (any_touched) {
    for (int b = 0; b < blocks; ++b) memcpy(slot + b * bytes, piece(b), bytes);
    if (collective_.scaling.used) {
      const void* on_device = collective_.scaling.on_device;
      const void* scalar = on_device != nullptr ? on_device : collective_.scaling.scalar;
      multiply(slot, static_cast<const char*>(scalar), blocks * chunk_elements(chunk),
               collective_.shape.type);
    }
  }
  comm_.self().untouched[number % kRingSlots].store(any_touched ? 0 : 1);
  comm_.self().produced.store(number + 1);
}

bool Exchange::readable(uint64_t chunk) {
  for (int writer = 0; writer < comm_.size(); ++writer) {
    if (!reads_from(writer)) continue;
    if (comm_.segment().member(writer).produced.load() <= ring_chunk(writer, chunk)) return false;
  }
  return true;
}

const char* Exchange::block(int writer, uint64_t chunk, size_t elements) {
  const uint64_t number = ring_chunk(writer, chunk);
  if (comm_.segment().member(writer).untouched[number % kRingSlots].load() != 0) return nullptr;
  const size_t offset = send_per_member(collective_.shape.kind) ? comm_.rank() * elements * element_ : 0;
  return comm_.segment().ring_slot(writer, number) + offset;
}

void Exchange::read(uint64_t chunk) {
  const size_t elements = chunk_elements(chunk);
  if (reduces(collective_.shape.kind)) {
    reduce_chunk(chunk, elements);
  } else {
    for (int writer = 0; writer < comm_.size(); ++writer) {
      if (reads_from(writer)) copy_chunk(chunk, writer, elements);
    }
  }
  for (int writer = 0; writer < comm_.size(); ++writer) {
    if (!reads_from(writer)) continue;
    comm_.segment().consumed(comm_.rank(), writer).store(ring_chunk(writer, chunk) + 1);
  }
}

void Exchange::reduce_chunk(uint64_t chunk, size_t elements) {
  char* result = collective_.receive + chunk * per_chunk_ * element_;
  bool any = false;
  for (int writer = 0; writer < comm_.size(); ++writer) {
    const char* from = block(writer, chunk, elements);
    any |= from != nullptr;
    sources_[writer] = from != nullptr ? from : kZeros;
  }
  if (any) {
    reduce(result, sources_.data(), comm_.size(), elements, collective_.shape.type,
           collective_.shape.reduce_op);
  } else {
    fill_bytes(result, 0, elements * element_);
  }
}

void Exchange::copy_chunk(uint64_t chunk, int writer, size_t elements) {
  const uint64_t first = receive_per_member(collective_.shape.kind) ? writer * collective_.shape.count : 0;
  char* to = collective_.receive + (first + chunk * per_chunk_) * element_;
  if (to == nullptr) return;
  if (const char* from = block(writer, chunk, elements)) {
    memcpy(to, from, elements * element_);
  } else {
    fill_bytes(to, 0, elements * element_);
  }
}

}  // namespace simgpu::nccl
