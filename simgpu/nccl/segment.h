// What the members of one communicator share: a piece of memory without a name, laid out below.
//
// It is a memfd. Its creator keeps the descriptor open until every member has mapped it; the others open it
// as /proc/<pid>/fd/<number>, which the unique id carries (same user, same pid namespace). So there is
// nothing to remove, however a job ends: the kernel frees the memory with its last user.
//
// Only atomics live here, no locks: a process that is killed or stopped at any moment leaves the others
// waiting, and nothing broken. A fresh segment is all zeros, which is every counter's start.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace simgpu::nccl {

inline constexpr uint64_t kWindow = 16;    // calls a member may be ahead of the slowest one
inline constexpr uint64_t kRingSlots = 8;  // chunks of collectives that a member may be ahead of a reader
inline constexpr size_t kSlotBytes = 128 << 10;
inline constexpr uint64_t kMailSlots = 8;           // chunks that a sender may be ahead of the receiver:
inline constexpr size_t kMailSlotBytes = 32 << 10;  // 256 KiB, so a send of that size needs no receive

// Where a segment can be found. `token` tells it from another file that later has the same number in that
// process.
struct SegmentName {
  int32_t pid;
  int32_t fd;
  uint64_t token;
};

// What must be equal in the calls of all members.
struct CallShape {
  uint32_t kind;
  int32_t type;
  int32_t reduce_op;
  int32_t root;
  uint64_t count;

  bool operator==(const CallShape&) const = default;
};

// One kind of gathering on the host: ncclCommSplit or ncclCommShrink.
struct Gathering {
  std::atomic<uint64_t> entered;    // which one this member has entered, from 1
  std::atomic<uint64_t> published;  // in which `child` is valid (on the leader of a new communicator)
  std::atomic<uint64_t> finished;   // which one this member no longer reads anything of
  int32_t color;
  int32_t key;
  SegmentName child;
};

// One member. Only that member writes here.
struct alignas(64) Member {
  std::atomic<uint32_t> joined;
  std::atomic<uint32_t> left;
  int32_t pid;
  int32_t node;
  int32_t physical_device;

  alignas(64) std::atomic<uint64_t> posted;  // calls described in `shapes`
  std::atomic<uint64_t> done;                // calls completed here
  std::atomic<uint64_t> produced;            // chunks put into the ring
  CallShape shapes[kWindow];
  bool all_untouched[kWindow];                  // what this member gives to the call was never written: zeros
  std::atomic<uint32_t> untouched[kRingSlots];  // the chunk is all zeros and was not copied

  Gathering split;
  Gathering shrink;
};

// From one member to another: written by the sender but for `received`.
struct alignas(64) Mailbox {
  std::atomic<uint64_t> sent;
  std::atomic<uint64_t> received;
  uint64_t message_bytes[kMailSlots];  // of the message that the chunk belongs to
  uint32_t untouched[kMailSlots];
};

struct alignas(64) Header {
  std::atomic<uint32_t> size;  // members; set by the first that joins
  std::atomic<uint32_t> joined;
  std::atomic<uint32_t> left;
  alignas(64) std::atomic<uint32_t> bell;  // bell.h
  std::atomic<uint32_t> sleepers;
};

// Makes a segment and its name. Its descriptor stays open until release_segment(). False: no memory, no
// descriptor.
bool create_segment(SegmentName* name);

// Closes the creator's descriptor; nothing in another process, or if it was closed before.
void release_segment(const SegmentName& name);

// A mapped segment.
class Segment {
 public:
  enum class Status { kOk, kGone, kOtherSize, kFailed };

  Segment() = default;
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // kGone: its creator has ended, or has closed it because all members had joined. kOtherSize: somebody else
  // thinks the communicator has another size. kFailed: errno says why.
  Status map(const SegmentName& name, int size);

  explicit operator bool() const { return base_ != nullptr; }
  Header& header() { return *reinterpret_cast<Header*>(base_); }
  Member& member(int rank) { return members_[rank]; }
  std::atomic<uint64_t>& consumed(int reader, int writer) { return consumed_[reader * size_ + writer]; }
  Mailbox& mailbox(int from, int to) { return mailboxes_[from * size_ + to]; }
  char* ring_slot(int rank, uint64_t chunk) {
    return ring_ + (static_cast<uint64_t>(rank) * kRingSlots + chunk % kRingSlots) * kSlotBytes;
  }
  char* mail_slot(int from, int to, uint64_t chunk) {
    return mail_ +
           ((static_cast<uint64_t>(from) * size_ + to) * kMailSlots + chunk % kMailSlots) * kMailSlotBytes;
  }

 private:
  char* base_ = nullptr;
  size_t bytes_ = 0;
  int size_ = 0;
  Member* members_ = nullptr;
  std::atomic<uint64_t>* consumed_ =
      nullptr;  // [reader][writer]: chunks of the writer's ring that it needs no more
  Mailbox* mailboxes_ = nullptr;
  char* ring_ = nullptr;
  char* mail_ = nullptr;
};

}  // namespace simgpu::nccl
