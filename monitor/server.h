// The monitor's end of the wire (core/flight/wire.h): the abstract socket of a job and one connection a rank
// process.
//
// Threads: one at a time.  Nothing here blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/flight/wire.h"
#include "monitor/descriptor.h"

namespace dshang::monitor {

// Who connected, as the kernel says (SO_PEERCRED).
struct Peer {
  std::int32_t pid = 0;  // 0 = in a pid namespace that is not ours
  std::uint32_t uid = 0;
};

struct Connection {
  Descriptor socket;
  Peer peer;

  // False when the other end is gone or does not take it.
  bool send(flight::MessageKind kind, std::uint64_t number = 0, const std::string& text = {}) const;
};

// What a rank handed over.
struct Registration {
  flight::Hello hello{};
  Descriptor memory, pidfd, error_output;
};

enum class Received { kNothing, kClosed, kMessage, kBad };

class Server {
 public:
  // Takes the job's address.  False with errno set; EADDRINUSE: another monitor has it.
  bool listen(std::uint32_t uid, std::uint64_t job);
  // The same with a socket that listens there already; false: it does not listen.
  bool adopt(Descriptor socket);
  int descriptor() const { return socket_.get(); }
  bool listening() const { return static_cast<bool>(socket_); }
  // Gives the address free; whoever is not accepted yet sees the connection reset and looks for another
  // monitor.
  void close() { socket_.reset(); }
  // A new connection, if there is one.
  std::optional<Connection> accept();

 private:
  Descriptor socket_;
};

// Whether the job's address is taken, by a monitor of this network namespace; also when that cannot be told.
bool somebody_listens(std::uint32_t uid, std::uint64_t job);

// Reads one message.  kMessage: a Hello with its descriptors is in `out`.  kBad: something else, said in
// `why`.
Received receive_hello(const Connection& connection, Registration* out, std::string* why);

// Reads and drops what a registered rank sends (it has nothing to say); kClosed when it has gone.
Received drop_messages(const Connection& connection);

}  // namespace dshang::monitor
