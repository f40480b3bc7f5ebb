#include "simgpu/nccl/p2p.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "simgpu/core/bytes.h"
#include "simgpu/core/log.h"
#include "simgpu/nccl/options.h"

namespace simgpu::nccl {
namespace {

constexpr size_t kAskedPerPage = 64 << 10;  // chunks of smaller messages are copied without asking if touched

// A message without bytes is a chunk without bytes: NCCL synchronises on it, too.
uint64_t chunks_of(size_t bytes) {
  return std::max<uint64_t>(1, (bytes + kMailSlotBytes - 1) / kMailSlotBytes);
}

class Progress {
 public:
  Progress(Comm& comm, const Transfer& transfer)
      : comm_(comm),
        transfer_(transfer),
        from_(transfer.send ? comm.rank() : transfer.peer),
        to_(transfer.send ? transfer.peer : comm.rank()),
        mailbox_(comm.segment().mailbox(from_, to_)),
        chunks_(chunks_of(transfer.bytes)) {
    uint64_t& before = (transfer.send ? comm.sent_before() : comm.received_before())[transfer.peer];
    first_ = before;
    before += chunks_;
  }

  bool complete() const { return done_ == chunks_; }

  // Moves the next chunk if that is possible now.
  bool step() {
    if (complete() || never_) return false;
    return transfer_.send ? send_chunk() : receive_chunk();
  }

 private:
  size_t chunk_bytes() const { return std::min(kMailSlotBytes, transfer_.bytes - done_ * kMailSlotBytes); }
  char* place() const { return transfer_.buffer + done_ * kMailSlotBytes; }

  bool send_chunk() {
    const uint64_t number = first_ + done_;
    // Not equal: an earlier send of this launch to the same member is not through.
    if (mailbox_.sent.load() != number || mailbox_.received.load() + kMailSlots <= number) return false;
    const size_t bytes = chunk_bytes();
    const bool untouched = transfer_.bytes >= kAskedPerPage && !touched(place(), bytes);
    if (!untouched && bytes > 0) memcpy(comm_.segment().mail_slot(from_, to_, number), place(), bytes);
    mailbox_.message_bytes[number % kMailSlots] = transfer_.bytes;
    mailbox_.untouched[number % kMailSlots] = untouched ? 1 : 0;
    mailbox_.sent.store(number + 1);
    ++done_;
    return true;
  }

  bool receive_chunk() {
    const uint64_t number = first_ + done_;
    if (mailbox_.received.load() != number || mailbox_.sent.load() <= number) return false;
    const size_t message = mailbox_.message_bytes[number % kMailSlots];
    if (message != transfer_.bytes) {
      never_ = true;
      tell_oracle("{\"what\": \"hang\", \"comm\": \"%016" PRIx64
                  "\", \"from\": %d, \"to\": %d, \"sent\": %zu, "
                  "\"expected\": %zu}",
                  comm_.id(), from_, to_, message, transfer_.bytes);
      log(1,
          "communicator %016" PRIx64
          ": rank %d sent %zu bytes to rank %d, which expects %zu; this never completes",
          comm_.id(), from_, message, to_, transfer_.bytes);
      return false;
    }
    const size_t bytes = chunk_bytes();
    if (mailbox_.untouched[number % kMailSlots] != 0) {
      fill_bytes(place(), 0, bytes);
    } else if (bytes > 0) {
      memcpy(place(), comm_.segment().mail_slot(from_, to_, number), bytes);
    }
    mailbox_.received.store(number + 1);
    ++done_;
    return true;
  }

  Comm& comm_;
  const Transfer& transfer_;
  const int from_;
  const int to_;
  Mailbox& mailbox_;
  const uint64_t chunks_;
  uint64_t first_ = 0;  // number of the first chunk among all that this pair exchanges
  uint64_t done_ = 0;
  bool never_ = false;
};

}  // namespace

void run_transfers(Comm& comm, const std::vector<Transfer>& transfers) {
  std::vector<Progress> all;
  all.reserve(transfers.size());
  for (const Transfer& transfer : transfers) all.emplace_back(comm, transfer);
  comm.until([&] {
    bool moved = false;
    for (bool progress = true; progress;) {
      progress = false;
      for (Progress& one : all) progress |= one.step();
      moved |= progress;
    }
    if (moved) comm.bell().ring();
    return std::all_of(all.begin(), all.end(), [](const Progress& one) { return one.complete(); });
  });
}

}  // namespace simgpu::nccl
