// The connection of this process to its node's monitor (core/flight/wire.h), and the monitor's life as seen
// from here.
//
// Connects, starts a monitor where nobody listens, hands the flight memory over, answers requests, and does
// it all again when the monitor dies.  Several ranks may come to start a monitor at once: one of them gets
// the address, the others find it taken. Bounded: waits between tries grow to 5 s; after kStarts starts in
// vain none is started any more, after kDeaths deaths within a minute each it gives up, both with one line.
// Recording goes on without it. Threads: the helper thread; forget() in a forked child.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/flight/wire.h"
#include "core/flight/writer.h"
#include "interpose/runtime/own_descriptor.h"

namespace dshang::interpose {

class MonitorLink {
 public:
  static constexpr unsigned kStarts = 6, kDeaths = 5;

  // What is due now; returns the milliseconds until something is due again.
  int advance(const flight::Writer& writer, std::uint64_t now_ns);

  // A process that has just woken: its memory is to be handed over.
  void expect() { due_.store(true, std::memory_order_relaxed); }

  // The memory is not handed over yet and may well be within a second.  Any thread.
  bool is_due() const { return due_.load(std::memory_order_acquire); }

  // Descriptor to wait for, -1 = not connected.  advance() has seen to it that it is no number of the host's
  // by now.
  int descriptor() const { return connection_.number(); }

  // It is readable or closed.
  void receive(const flight::Writer& writer, std::uint64_t now_ns);

  // A forked child: closes its copy of the connection.  Async-signal-safe.
  void forget();

 private:
  enum class State { kApart, kGreeting, kWelcomed, kGivenUp };

  void try_to_connect(const flight::Writer& writer, std::uint64_t now_ns);
  void nobody_listens(std::uint64_t now_ns);
  void greet(const flight::Writer& writer, int fd, std::uint64_t now_ns);
  void apart(std::uint64_t now_ns, std::uint64_t wait_ms);
  void lost(std::uint64_t now_ns);
  void taken_away(std::uint64_t now_ns);
  void connect_again(std::uint64_t now_ns);
  void refused(const flight::Message& message, std::uint64_t now_ns);
  void give_up(const char* why);
  static void say_there_is_none(const char* why);

  State state_ = State::kApart;
  OwnDescriptor connection_;
  std::atomic<bool> due_{false};
  std::uint64_t next_try_ns_ = 0, wait_ms_ = 0;
  std::uint64_t started_ns_ = 0;  // when a monitor was started last, 0 = never
  std::uint64_t greeted_ns_ = 0, welcomed_ns_ = 0;
  unsigned starts_ = 0;  // since the last welcome
  unsigned deaths_ = 0;  // in a row
  unsigned refusals_ = 0;
  bool was_lost_ = false;
};

}  // namespace dshang::interpose
