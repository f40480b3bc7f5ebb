#include "simgpu/nccl/comm.h"

#include <unordered_map>

#include "simgpu/core/ledger.h"
#include "simgpu/nccl/options.h"

namespace simgpu::nccl {
namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_map<Comm*, std::shared_ptr<Comm>> comms;
};

// Never destroyed: threads of the program may still be inside a call while the process ends.
Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

}  // namespace

Comm::~Comm() { leave(); }

void Comm::set_membership(int rank, int size, uint64_t id) {
  rank_ = rank;
  size_ = size;
  id_ = id;
  chunks_before_.assign(size, 0);
  sent_before_.assign(size, 0);
  received_before_.assign(size, 0);
  joined_.store(true);
}

void Comm::close() {
  closed_.store(true);
  stopped_.store(true);
  if (joined_.load()) bell().ring();
}

void Comm::revoke() {
  revoked_.store(true);
  stopped_.store(true);
  bell().ring();
}

bool Comm::begin_turn(uint64_t ticket) {
  return until([&] { return (ticket == kNoTicket || turn_.load() == ticket - 1) && !busy_.exchange(true); });
}

void Comm::end_turn() {
  busy_.store(false);
  bell().ring();
}

void Comm::end_ticket(uint64_t ticket) {
  if (ticket == kNoTicket) return;
  {
    std::lock_guard lock(tickets_mutex_);
    over_early_.insert(ticket);
    while (!over_early_.empty() && *over_early_.begin() == turn_.load() + 1) {
      turn_.fetch_add(1);
      over_early_.erase(over_early_.begin());
    }
  }
  bell().ring();
}

bool Comm::take_memory() {
  if (reserve_bytes(device_, options().comm_bytes) != kSuccess) return false;
  memory_taken_.store(true);
  return true;
}

void Comm::leave() {
  if (memory_taken_.exchange(false)) release_bytes(device_, options().comm_bytes);
  if (!joined_.load() || left_.exchange(true)) return;
  self().left.store(1);
  segment_.header().left.fetch_add(1);
  bell().ring();
}

int Comm::add_reduce_op(const PreMultiply& operation) {
  std::lock_guard lock(ops_mutex_);
  user_ops_.push_back({operation, true});
  return kFirstUserOp + static_cast<int>(user_ops_.size()) - 1;
}

bool Comm::remove_reduce_op(int number) {
  std::lock_guard lock(ops_mutex_);
  const int index = number - kFirstUserOp;
  if (index < 0 || index >= static_cast<int>(user_ops_.size()) || !user_ops_[index].live) return false;
  user_ops_[index].live = false;
  return true;
}

bool Comm::find_reduce_op(int number, PreMultiply* found) {
  std::lock_guard lock(ops_mutex_);
  const int index = number - kFirstUserOp;
  if (index < 0 || index >= static_cast<int>(user_ops_.size()) || !user_ops_[index].live) return false;
  *found = user_ops_[index].operation;
  return true;
}

void register_comm(std::shared_ptr<Comm> comm) {
  std::lock_guard lock(registry().mutex);
  Comm* handle = comm.get();
  registry().comms.emplace(handle, std::move(comm));
}

std::shared_ptr<Comm> find_comm(Comm* handle) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().comms.find(handle);
  return found == registry().comms.end() ? nullptr : found->second;
}

std::shared_ptr<Comm> forget_comm(Comm* handle) {
  std::lock_guard lock(registry().mutex);
  const auto node = registry().comms.extract(handle);
  return node.empty() ? nullptr : node.mapped();
}

}  // namespace simgpu::nccl
