#include "monitor/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace dshang::monitor {
namespace {

constexpr unsigned kDescriptors = 3;

// Takes over all descriptors of a message; those beyond the expected ones are closed.
unsigned take_descriptors(msghdr& message, Descriptor (&out)[kDescriptors]) {
  unsigned count = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    std::size_t fds = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < fds; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      Descriptor owner(fd);
      if (count < kDescriptors) out[count++] = std::move(owner);
    }
  }
  return count;
}

Descriptor make_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

bool Connection::send(flight::MessageKind kind, std::uint64_t number, const std::string& text) const {
  flight::Message message{};
  message.kind = kind;
  message.version = flight::kWireVersion;
  message.number = number;
  std::memcpy(message.text, text.data(), std::min(text.size(), sizeof message.text - 1));
  return ::send(socket.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         ssize_t{sizeof message};
}

bool Server::listen(std::uint32_t uid, std::uint64_t job) {
  Descriptor socket = make_socket();
  if (!socket) return false;
  sockaddr_un address;
  socklen_t bytes = flight::wire_address(&address, uid, job);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) return false;
  if (::listen(socket.get(), SOMAXCONN) != 0) return false;
  socket_ = std::move(socket);
  return true;
}

bool Server::adopt(Descriptor socket) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens) return false;
  if (fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0) return false;
  socket_ = std::move(socket);
  return true;
}

bool somebody_listens(std::uint32_t uid, std::uint64_t job) {
  Descriptor socket = make_socket();
  sockaddr_un address;
  socklen_t bytes = flight::wire_address(&address, uid, job);
  return !socket || connect(socket.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0 ||
         (errno != ECONNREFUSED && errno != ENOENT);
}

std::optional<Connection> Server::accept() {
  Connection connection;
  connection.socket.reset(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection.socket) return std::nullopt;
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(connection.socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) who.uid = UINT32_MAX;
  connection.peer = {who.pid, who.uid};
  return connection;
}

Received receive_hello(const Connection& connection, Registration* out, std::string* why) {
  flight::Hello hello{};
  iovec part{&hello, sizeof hello};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = recvmsg(connection.socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? Received::kNothing : Received::kClosed;
  if (n == 0) return Received::kClosed;
  Descriptor taken[kDescriptors];
  unsigned count = take_descriptors(message, taken);
  if (n < ssize_t{sizeof(flight::Message)} || hello.head.kind != flight::MessageKind::kHello) {
    *why = "a message that is no greeting";
    return Received::kBad;
  }
  if (hello.head.version != flight::kWireVersion || n != ssize_t{sizeof hello}) {
    *why = "library and monitor are of different versions";
    return Received::kBad;
  }
  Descriptor* places[kDescriptors] = {&out->memory, &out->pidfd, &out->error_output};
  unsigned next = 0;
  for (unsigned i = 0; i < kDescriptors; ++i) {
    if ((hello.descriptors & (1u << i)) && next < count) *places[i] = std::move(taken[next++]);
  }
  out->hello = hello;
  return Received::kMessage;
}

Received drop_messages(const Connection& connection) {
  for (;;) {
    flight::Message message;
    iovec part{&message, sizeof message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t n = recvmsg(connection.socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? Received::kNothing : Received::kClosed;
    if (n == 0) return Received::kClosed;
    Descriptor taken[kDescriptors];
    take_descriptors(header, taken);
  }
}

}  // namespace dshang::monitor
