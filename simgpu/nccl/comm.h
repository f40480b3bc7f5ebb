// A communicator, as one member has it. Its address is the ncclComm_t.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "simgpu/nccl/abi.h"
#include "simgpu/nccl/bell.h"
#include "simgpu/nccl/segment.h"

namespace simgpu::nccl {

// An operation made by ncclRedOpCreatePreMulSum, as a call uses it: every value times `scalar`, then the sum.
struct PreMultiply {
  bool used = false;
  const void* on_device = nullptr;  // read when the call is executed; nullptr: `scalar` holds it
  char scalar[8] = {};              // an element of the call's type
};

class Comm {
 public:
  // A communicator that has no members yet: see join.h.
  Comm(int device, bool blocking) : device_(device), blocking_(blocking) {}
  ~Comm();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int device() const { return device_; }
  bool blocking() const { return blocking_; }
  uint64_t id() const { return id_; }  // equal on all members, for log lines
  Segment& segment() { return segment_; }
  Member& self() { return segment_.member(rank_); }
  Bell bell() { return Bell(segment_.header()); }

  // kInProgress while a communicator that does not block is being made, then how that ended.
  Result state() const { return state_.load(); }
  void set_state(Result state) { state_.store(state); }

  // What went wrong behind the caller's back; kOk: nothing.
  Result async_error() const { return async_error_.load(); }
  void set_async_error(Result error) { async_error_.store(error); }

  // --- waiting ---

  // On the device: calls `attempt` until it returns true; between two attempts something has changed in the
  // communicator. False if the work on the device was stopped first.
  template <class Attempt>
  bool until(Attempt&& attempt) {
    return wait(stopped_, attempt);
  }

  // The same on the host: false only if the communicator was closed.
  template <class Attempt>
  bool until_on_host(Attempt&& attempt) {
    return wait(closed_, attempt);
  }

  // ncclCommAbort: all waits of this member end, what is queued or running returns, done or not.
  void close();
  bool closed() const { return closed_.load(); }

  // ncclCommRevoke: the same for the work on the device only; new calls are refused.
  void revoke();
  bool revoked() const { return revoked_.load(); }
  bool stopped() const { return stopped_.load(); }

  // --- order of execution ---
  // NCCL executes the launches of one communicator in the order in which they were made, also on
  // different streams.

  // A launch of a graph has no ticket: it takes its turn when its stream comes to it.

  static constexpr uint64_t kNoTicket = 0;
  uint64_t take_ticket() { return tickets_.fetch_add(1) + 1; }
  bool begin_turn(uint64_t ticket);  // blocks; false: stopped first
  void end_turn();
  void end_ticket(uint64_t ticket);  // after its turn, or if it will have none
  bool idle() { return turn_.load() == tickets_.load() && !busy_.load(); }

  uint64_t next_made() { return ++made_; }  // number of a collective that the host makes; see launch_mutex()

  std::mutex& launch_mutex() { return launch_mutex_; }  // held while a ticket is taken and its launch queued

  // --- used by the launch whose turn it is ---

  uint64_t next_call() { return ++calls_; }
  bool lost() const { return lost_; }  // a call was dropped (fault_setting.h): the later ones never complete
  void lose() { lost_ = true; }
  std::vector<uint64_t>& chunks_before() { return chunks_before_; }  // [writer]: of its ring, in past calls
  std::vector<uint64_t>& sent_before() { return sent_before_; }      // [peer]: chunks, in past launches
  std::vector<uint64_t>& received_before() { return received_before_; }

  // --- the rest ---

  // Takes the communicator's device memory; it is given back with the communicator, or by leave().
  bool take_memory();

  // This member calls no more; the others may be waiting in ncclCommDestroy for it. Idempotent.
  void leave();

  int add_reduce_op(const PreMultiply& operation);
  bool remove_reduce_op(int number);
  bool find_reduce_op(int number, PreMultiply* found);  // false: unknown to this communicator

  // Called once the segment is mapped.
  void set_membership(int rank, int size, uint64_t id);

  bool begin_finalize() { return !finalized_.exchange(true); }  // false: for the second time

  // Numbers of the splits and shrinks of this communicator in the order of this member's calls, from 1.
  uint64_t next_split() { return splits_.fetch_add(1) + 1; }
  uint64_t next_shrink() { return shrinks_.fetch_add(1) + 1; }

 private:
  template <class Attempt>
  bool wait(const std::atomic<bool>& ended, Attempt& attempt) {
    Bell waiting_bell = bell();
    for (;;) {
      if (ended.load()) return false;
      const uint32_t seen = waiting_bell.value();
      if (attempt()) return true;
      waiting_bell.wait(seen);
    }
  }

  const int device_;
  const bool blocking_;
  std::atomic<int> rank_{-1};  // an abort may ask while the communicator is still being made
  std::atomic<int> size_{0};
  std::atomic<uint64_t> id_{0};
  Segment segment_;
  std::atomic<Result> state_{kInProgress};
  std::atomic<Result> async_error_{kOk};
  std::atomic<bool> joined_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> closed_{false};
  std::atomic<bool> revoked_{false};
  std::atomic<bool> memory_taken_{false};
  std::atomic<bool> left_{false};
  std::atomic<bool> finalized_{false};

  std::mutex launch_mutex_;
  std::atomic<uint64_t> splits_{0};
  std::atomic<uint64_t> shrinks_{0};
  std::atomic<uint64_t> tickets_{0};
  std::atomic<uint64_t> turn_{0};  // tickets that are over
  std::atomic<bool> busy_{false};  // a launch is being executed
  std::mutex tickets_mutex_;
  std::set<uint64_t> over_early_;  // tickets that ended before their turn

  uint64_t made_ = 0;
  uint64_t calls_ = 0;
  bool lost_ = false;
  std::vector<uint64_t> chunks_before_;
  std::vector<uint64_t> sent_before_;
  std::vector<uint64_t> received_before_;

  struct UserOp {
    PreMultiply operation;
    bool live;
  };
  std::mutex ops_mutex_;
  std::vector<UserOp> user_ops_;
};

// The communicators of this process that the program may still name.
void register_comm(std::shared_ptr<Comm> comm);
std::shared_ptr<Comm> find_comm(Comm* handle);    // nullptr: none of ours, or no longer
std::shared_ptr<Comm> forget_comm(Comm* handle);  // the same, and it is unknown from then on

}  // namespace simgpu::nccl
