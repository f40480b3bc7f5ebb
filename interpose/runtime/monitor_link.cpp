#include "interpose/runtime/monitor_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/rank/say.h"
#include "core/rank/stacks.h"
#include "interpose/runtime/beside.h"
#include "interpose/runtime/libc_base.h"
#include "interpose/runtime/log.h"
#include "interpose/runtime/monitor_start.h"
#include "interpose/runtime/ordered_failure.h"
#include "interpose/runtime/process.h"

namespace dshang::interpose {
namespace {

constexpr std::uint64_t kMillisecond = 1000000, kSecond = 1000 * kMillisecond;
constexpr std::uint64_t kLongestWait = 5000;        // ms
constexpr std::uint64_t kFirstWait = 20;            // ms
constexpr std::uint64_t kLongestListenWait = 30;    // ms, while a started monitor makes ready
constexpr std::uint64_t kStartTakes = 5 * kSecond;  // until a started monitor listens, at most
constexpr std::uint64_t kAnswerTakes = 10 * kSecond;
constexpr std::uint64_t kSteady = 60 * kSecond;  // a monitor that lived so long did not die of the same thing
constexpr unsigned kRefusals = 50;               // of monitors in their last seconds

// Anybody in the network namespace can take an abstract address; flight memory goes to one's own user alone.
bool peer_is_trusted(int fd) {
  ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == getuid() || peer.uid == 0;
}

flight::Hello hello_of(const flight::Writer& writer) {
  const flight::Header& header = writer.header();
  flight::Hello hello = {};
  hello.head.kind = flight::MessageKind::kHello;
  hello.head.version = flight::kWireVersion;
  hello.pid = header.pid;
  hello.rank = header.rank;
  hello.world_size = header.world_size;
  hello.restart_count = header.restart_count;
  hello.job = header.job;
  hello.flight_bytes = header.total_bytes;
  hello.provisional = header.provisional;
  return hello;
}

// Sends Hello with the descriptors that there are, in the order of their bits; `files` holds -1 for a missing
// one.
bool send_hello(int fd, flight::Hello& hello, const int (&files)[3]) {
  int sent[3];
  unsigned count = 0;
  for (unsigned i = 0; i < 3; ++i) {
    if (files[i] < 0) continue;
    hello.descriptors |= 1u << i;
    sent[count++] = files[i];
  }
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof sent)] = {};
  iovec bytes{&hello, sizeof hello};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(count * sizeof(int));
  memcpy(CMSG_DATA(rights), sent, count * sizeof(int));
  return sendmsg(fd, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof hello);
}

}  // namespace

int MonitorLink::advance(const flight::Writer& writer, std::uint64_t now_ns) {
  if (connection_.number() >= 0 && !connection_.is_still_ours()) taken_away(now_ns);
  if (state_ == State::kApart && now_ns >= next_try_ns_) try_to_connect(writer, now_ns);
  if (state_ == State::kGreeting && now_ns - greeted_ns_ > kAnswerTakes) {
    DSHANG_LOG_ONCE("the monitor does not answer; recording goes on");
  }
  if (state_ != State::kApart) return 1000;
  if (next_try_ns_ <= now_ns) return 1;
  return static_cast<int>((next_try_ns_ - now_ns) / kMillisecond) + 1;
}

void MonitorLink::try_to_connect(const flight::Writer& writer, std::uint64_t now_ns) {
  int fd = move_up(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd < 0) return apart(now_ns, kLongestWait);
  sockaddr_un address;
  socklen_t size = flight::wire_address(&address, getuid(), writer.header().job);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) {
    if (peer_is_trusted(fd)) return greet(writer, fd, now_ns);
    close(fd);
    return give_up("its address belongs to another user");
  }
  int error = errno;
  close(fd);
  if (error == ECONNREFUSED || error == ENOENT) return nobody_listens(now_ns);
  if (error == EAGAIN || error == EINTR) return apart(now_ns, kFirstWait);  // its queue is full
  DSHANG_LOG_ONCE("the monitor cannot be reached: %s; trying again", strerror(error));
  apart(now_ns, kLongestWait);
}

void MonitorLink::nobody_listens(std::uint64_t now_ns) {
  bool starting = started_ns_ && now_ns - started_ns_ < kStartTakes;
  if (!starting) {
    const char* program = monitor_program();
    if (!program || starts_ >= kStarts) {
      // Another rank's monitor may still come.
      say_there_is_none(program ? "it was started several times and never listened"
                                : "the dshang program is not beside libdshang.so; DSHANG_MONITOR may name it");
      return apart(now_ns, kLongestWait);
    }
    ++starts_;
    started_ns_ = now_ns;
    int error = start_monitor(program, process::awake().identity.job, process::awake().environment.entries());
    if (error) {
      char why[kLongestPath + 128];
      snprintf(why, sizeof why, "%s could not be started: %s", program, strerror(error));
      say_there_is_none(why);
      started_ns_ = 0;
      return apart(now_ns, kLongestWait);
    }
    return apart(now_ns, 0);
  }
  std::uint64_t longer = wait_ms_ ? wait_ms_ * 2 : kFirstWait;
  apart(now_ns, longer < kLongestListenWait ? longer : kLongestListenWait);
}

void MonitorLink::apart(std::uint64_t now_ns, std::uint64_t wait_ms) {
  state_ = State::kApart;
  wait_ms_ = wait_ms < kLongestWait ? wait_ms : kLongestWait;
  due_.store(wait_ms_ < kLongestWait, std::memory_order_release);
  next_try_ns_ = now_ns + wait_ms_ * kMillisecond;
}

void MonitorLink::greet(const flight::Writer& writer, int fd, std::uint64_t now_ns) {
  const FlightMemory& memory = process::awake().memory;
  if (!still_open(memory)) {
    close(fd);
    return give_up("this program closed the descriptor of the flight memory");
  }
  flight::Hello hello = hello_of(writer);
  int pidfd = libc::open_pidfd(hello.pid);
  int error_output = rank::has_stderr() ? STDERR_FILENO : -1;
  bool sent = send_hello(fd, hello, {memory.fd, pidfd, error_output});
  if (pidfd >= 0) close(pidfd);
  if (!sent) {
    close(fd);
    return apart(now_ns, kFirstWait * 10);
  }
  connection_.take(fd);
  // What lies in a socket reaches the monitor also after this process is gone.
  due_.store(false, std::memory_order_release);
  state_ = State::kGreeting;
  greeted_ns_ = now_ns;
}

void MonitorLink::receive(const flight::Writer& writer, std::uint64_t now_ns) {
  if (!connection_.is_still_ours()) return taken_away(now_ns);
  flight::Message message = {};
  ssize_t length = recv(descriptor(), &message, sizeof message - 1, MSG_DONTWAIT);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  constexpr ssize_t kHead = offsetof(flight::Message, text);
  if (length < kHead) return lost(now_ns);  // closed, broken, or not our monitor
  message.text[sizeof message.text - 1] = 0;
  switch (message.kind) {
    case flight::MessageKind::kWelcome:
      state_ = State::kWelcomed;
      welcomed_ns_ = now_ns;
      starts_ = refusals_ = 0;
      if (was_lost_) DSHANG_LOG_ONCE("the monitor ended before the job; it was started again");
      was_lost_ = false;
      return;
    case flight::MessageKind::kRefuse:
      return refused(message, now_ns);
    case flight::MessageKind::kStacks:
      rank::write_stacks(writer, static_cast<std::uint32_t>(message.number));
      return;
    case flight::MessageKind::kFail:
      ordered_failure::take(writer, message);
      return;
    default:
      return;  // of a newer monitor, or nothing to do
  }
}

void MonitorLink::refused(const flight::Message& message, std::uint64_t now_ns) {
  connection_.close();
  if (message.number != 1 || ++refusals_ > kRefusals) return give_up(message.text);
  // It frees the address when it is gone; then there is nobody, and a new one is started.
  apart(now_ns, 200);
}

void MonitorLink::lost(std::uint64_t now_ns) {
  connection_.close();
  was_lost_ = true;  // said when another one is there: where none can be started that is what has to be said
  connect_again(now_ns);
}

void MonitorLink::taken_away(std::uint64_t now_ns) {
  connection_.close();
  if (!still_open(process::awake().memory)) {
    state_ = State::kGivenUp;
    DSHANG_LOG_ONCE(
        "this program closed dshang's descriptors; its monitor watches on, but gets no stacks of this rank");
    return;
  }
  DSHANG_LOG_ONCE("this program closed the connection to the monitor; it is made again");
  connect_again(now_ns);
}

void MonitorLink::connect_again(std::uint64_t now_ns) {
  bool was_welcome = state_ == State::kWelcomed;
  deaths_ = was_welcome && now_ns - welcomed_ns_ > kSteady ? 1 : deaths_ + 1;
  if (deaths_ > kDeaths) {
    return give_up(welcomed_ns_ ? "it was lost again and again" : "it ended at its start again and again");
  }
  started_ns_ = 0;
  wait_ms_ = 0;
  apart(now_ns, deaths_ == 1 ? kFirstWait : kFirstWait << deaths_);
}

void MonitorLink::give_up(const char* why) {
  state_ = State::kGivenUp;
  due_.store(false, std::memory_order_release);
  say_there_is_none(why);
}

void MonitorLink::say_there_is_none(const char* why) {
  DSHANG_LOG_ONCE("no monitor: %s; nothing is reported for this rank, training goes on", why);
}

void MonitorLink::forget() {
  connection_.close();
  due_.store(false, std::memory_order_relaxed);
  state_ = State::kApart;
  next_try_ns_ = wait_ms_ = started_ns_ = greeted_ns_ = welcomed_ns_ = 0;
  starts_ = deaths_ = refusals_ = 0;
  was_lost_ = false;
}

}  // namespace dshang::interpose
