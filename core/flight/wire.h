// What a rank and the monitor of its node say to each other, over an abstract Unix socket of type
// SOCK_SEQPACKET.
//
// The address is wire_address(uid, job).  A rank that starts a monitor takes the address for it, so that what
// ranks send waits there while the program starts; it comes as the monitor's standard input.  The rank
// connects and sends Hello with three descriptors (SCM_RIGHTS): the flight memory, a pidfd of itself, a copy
// of its stderr; the second and third may be missing.  The monitor answers kWelcome or kRefuse and keeps the
// connection; it may ask for stacks, or order a failure, at any time.  Either end closing it means that the
// process is gone (or has no use for the other): a rank then starts a monitor again.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace dshang::flight {

inline constexpr std::uint32_t kWireVersion = 1;

enum class MessageKind : std::uint32_t {
  kHello = 1,  // rank: Hello follows
  kWelcome,    // monitor: text = directory of the attempt
  kRefuse,     // monitor: text = why; try again only where `number` is 1 (a monitor in its last seconds)
  kStacks,     // monitor: write the stacks of all threads of this process; number = request
  kPing,       // monitor: nothing to do
  kFail,       // monitor: the communicators that there are answer an error; number = FailureKind, text = why
};

// Why communicators are to fail.
enum class FailureKind : std::uint64_t {
  kDisagreement = 0,
  kRankGone = 1,
};

struct Message {
  MessageKind kind;
  std::uint32_t version;
  std::uint64_t number;
  char text[480];
};

struct Hello {
  Message head;       // kind kHello
  std::int32_t pid;   // in the rank's own pid namespace; the monitor uses SO_PEERCRED
  std::int32_t rank;  // -1 = unknown
  std::int32_t world_size;
  std::int32_t restart_count;
  std::uint64_t job;
  std::uint64_t flight_bytes;
  std::uint32_t provisional;
  std::uint32_t descriptors;  // which follow, in this order: bit 0 flight memory, bit 1 pidfd, bit 2 stderr
};

// Fills in the address; returns its size in bytes.
inline socklen_t wire_address(sockaddr_un* address, std::uint32_t uid, std::uint64_t job) {
  *address = {};
  address->sun_family = AF_UNIX;  // sun_path[0] = 0: abstract
  int length = std::snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "dshang-%u-%016llx", uid,
                             static_cast<unsigned long long>(job));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
}

}  // namespace dshang::flight
