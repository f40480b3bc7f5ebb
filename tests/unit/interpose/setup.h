// What every test of the wrappers starts from: a sleeping process with a fake NCCL and a fake CUDA runtime behind the
// wrappers, which are linked into this program.
#pragma once

#include <string>
#include <vector>

#include "catch.h"
#include "fakes/fake.h"
#include "interpose/symbols/rows.h"
#include "runtime_double.h"

namespace setup {

using namespace dshang;
using namespace dshang::interpose;
using namespace dshang::interpose::abi;

// The wrapped functions under names of their own.
#define DSHANG_ROW(name, result, parameters, ...) \
  extern "C" result call_##name(DSHANG_PARAMETERS parameters) __asm__(#name);
#include "interpose/symbols/nccl.def"
#include "interpose/symbols/cuda.def"
#undef DSHANG_ROW

struct Process {
  Process() {
    runtime_double::fall_asleep();
    nccl->reset();
    cuda->reset();
  }
  ~Process() { runtime_double::fall_asleep(); }

  // A communicator of `size` ranks by ncclCommInitRank; wakes the process.
  Comm communicator(int size = 4, int rank = 1, char id = 'a') {
    Comm comm = nullptr;
    REQUIRE(call_ncclCommInitRank(&comm, size, unique_id(id), rank) == Result::kSuccess);
    REQUIRE(comm);
    return comm;
  }
  static UniqueId unique_id(char id) {
    UniqueId unique{};
    unique.bytes[5] = id;
    unique.bytes[127] = static_cast<char>(0x80);
    return unique;
  }

  const flight::Writer& writer() { return *runtime::recorder(); }
  std::uint64_t calls() { return writer().header().call_head.load(); }
  const flight::CallRecord& call(std::uint64_t n) {
    const flight::CallRecord* record = writer().call(n);
    REQUIRE(record);
    return *record;
  }
  const flight::CallRecord& last() { return call(calls() - 1); }
  const flight::CommEntry& comm(std::uint32_t index) { return writer().comm(index); }
  std::uint32_t comms() { return writer().header().comm_count.load(); }
  std::string op(const flight::CallRecord& record) { return kOpTable.ops[record.op].name; }
  std::uint32_t flags(const flight::CallRecord& record) { return record.flags.load(); }

  const FakeControl* nccl = fake_nccl_control();
  const FakeControl* cuda = fake_cudart_control();
};

inline Stream stream(std::uintptr_t n) { return reinterpret_cast<Stream>(n); }
inline Result all_reduce(Comm comm, std::size_t count = 10, std::uintptr_t on = 1) {
  return call_ncclAllReduce(nullptr, nullptr, Count{count}, DataType{7}, RedOp{0}, comm, stream(on));
}
inline Result send(Comm comm, int peer, std::uintptr_t on = 1) {
  return call_ncclSend(nullptr, Count{5}, DataType{7}, Peer{peer}, comm, stream(on));
}
inline Result recv(Comm comm, int peer, std::uintptr_t on = 1) {
  return call_ncclRecv(nullptr, Count{5}, DataType{7}, Peer{peer}, comm, stream(on));
}

}  // namespace setup
