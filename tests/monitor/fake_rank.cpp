// A rank process without training: writes flight memory, hands it to the monitor, and does what its standard
// input says, one command a line:
//
//   comm               the communicator of all ranks is ready
//   comms N            so many more communicators of its own alone are made, and destroyed
//   call OP COUNT      a collective on it is entered, returns and is done
//   wait OP COUNT      a collective is entered and does not return
//   finish             the newest one returns and is done
//   step N             a training step begins
//   burn MS            uses so much CPU time on the main thread
//   exit N             ends with a status;  record N: also leaves it in flight memory
//   signal N           raises a signal
//   reconnect          closes the connection and registers again
//
// It answers "ok" to each, and says "welcome TEXT", "refused TEXT" or "no monitor" when it has registered,
// "stacks N" when the monitor asks for them, "fail N TEXT" when it orders a failure, "closed" when the
// monitor closes the connection.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

#include "core/flight/wire.h"
#include "core/flight/writer.h"

namespace {

using namespace dshang;

struct Options {
  std::uint64_t job = 1;
  int rank = 0, local_rank = 0, world = 1, restart = 0;
  bool seal = true, hand_over_pidfd = true;
};

std::uint64_t clock_of(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return std::uint64_t(t.tv_sec) * 1000000000u + std::uint64_t(t.tv_nsec);
}
std::uint64_t now() { return clock_of(CLOCK_MONOTONIC); }

const flight::OpInfo kOps[] = {{"all_reduce", flight::kOpCollective | flight::kOpReduces, 0},
                               {"all_gather", flight::kOpCollective, 0}};

class FakeRank {
 public:
  explicit FakeRank(const Options& options) : options_(options) {
    std::size_t bytes = flight::Writer::total_bytes();
    memory_ = memfd_create("dshang", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (ftruncate(memory_, static_cast<off_t>(bytes)) != 0) std::abort();
    if (options.seal) fcntl(memory_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
    flight::Identity identity;
    identity.rank = options.rank;
    identity.local_rank = options.local_rank;
    identity.world_size = options.world;
    identity.restart_count = options.restart;
    identity.job = options.job;
    identity.start_ns = now();
    identity.start_real_ns = clock_of(CLOCK_REALTIME);
    writer_ = flight::Writer::format(base, identity, kOps, 2);
    std::uint32_t thread = writer_.thread(static_cast<std::uint32_t>(getpid()));
    writer_.thread_entry(thread).flags |= flight::kThreadCalls;
  }

  bool connect() {
    for (int attempt = 0; attempt < 100; ++attempt) {
      socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
      sockaddr_un address;
      socklen_t bytes = flight::wire_address(&address, getuid(), options_.job);
      if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), bytes) == 0) return greet();
      close(socket_);
      usleep(20000);
    }
    return false;
  }

  // False = end of input.
  bool obey() {
    pollfd watched[2] = {{0, POLLIN, 0}, {socket_, POLLIN, 0}};
    poll(watched, 2, -1);
    if (socket_ >= 0 && watched[1].revents) hear();
    if (!watched[0].revents) return true;
    char letter;
    if (read(0, &letter, 1) != 1) return false;
    if (letter != '\n') {
      line_ += letter;
      return true;
    }
    std::istringstream words(std::exchange(line_, {}));
    std::string verb;
    words >> verb;
    act(verb, words);
    say("ok");
    return true;
  }

  static void say(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

 private:
  bool greet() {
    int pidfd = options_.hand_over_pidfd ? static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)) : -1;
    flight::Hello hello{};
    hello.head.kind = flight::MessageKind::kHello;
    hello.head.version = flight::kWireVersion;
    hello.pid = getpid();
    hello.rank = options_.rank;
    hello.world_size = options_.world;
    hello.restart_count = options_.restart;
    hello.job = options_.job;
    hello.flight_bytes = flight::Writer::total_bytes();
    hello.provisional = writer_.header().provisional;
    int fds[3];
    unsigned count = 0;
    auto add = [&](unsigned bit, int fd) {
      if (fd < 0) return;
      hello.descriptors |= 1u << bit;
      fds[count++] = fd;
    };
    add(0, memory_);
    add(1, pidfd);
    add(2, 2);
    iovec part{&hello, sizeof hello};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
    bool sent = sendmsg(socket_, &message, MSG_NOSIGNAL) == ssize_t{sizeof hello};
    if (pidfd >= 0) close(pidfd);
    return sent;
  }

  void hear() {
    flight::Message message{};
    ssize_t n = recv(socket_, &message, sizeof message, 0);
    if (n != ssize_t{sizeof message}) {
      close(socket_);
      socket_ = -1;
      say("closed");
    } else if (message.kind == flight::MessageKind::kWelcome) {
      say(std::string("welcome ") + message.text);
    } else if (message.kind == flight::MessageKind::kRefuse) {
      say(std::string("refused ") + message.text);
    } else if (message.kind == flight::MessageKind::kStacks) {
      say("stacks " + std::to_string(message.number));
    } else if (message.kind == flight::MessageKind::kFail) {
      say("fail " + std::to_string(message.number) + " " + message.text);
    }
  }

  void act(const std::string& verb, std::istringstream& words) {
    std::int64_t number = 0;
    if (verb == "comm") {
      open_comm();
    } else if (verb == "comms") {
      for (words >> number; number > 0; --number) pass_comm(static_cast<std::uint64_t>(number));
    } else if (verb == "call" || verb == "wait") {
      std::string op;
      words >> op >> number;
      call(op, number, verb == "call");
    } else if (verb == "finish") {
      finish();
    } else if (verb == "step") {
      words >> number;
      begin_step(number);
    } else if (verb == "burn") {
      words >> number;
      std::uint64_t until =
          clock_of(CLOCK_PROCESS_CPUTIME_ID) + static_cast<std::uint64_t>(number) * 1000000u;
      while (clock_of(CLOCK_PROCESS_CPUTIME_ID) < until) {
      }
    } else if (verb == "record" || verb == "exit") {
      words >> number;
      if (verb == "record") writer_.ending(flight::EndingKind::kExit, static_cast<std::int32_t>(number));
      _exit(static_cast<int>(number));
    } else if (verb == "signal") {
      words >> number;
      raise(static_cast<int>(number));
    } else if (verb == "reconnect") {
      close(socket_);
      connect();
    } else {
      say("unknown command " + verb);
    }
  }

  void open_comm() {
    flight::CommEntry* comm = writer_.open_comm(&comm_);
    comm->origin = flight::CommOrigin::kInit;
    comm->id = 0x1234 + options_.job;
    comm->rank = options_.rank;
    comm->size = options_.world;
    comm->begin_ns = comm->ready_ns = now();
    comm->state = flight::CommState::kReady;
    writer_.header().provisional = 0;
    writer_.header().world_rank = static_cast<std::uint32_t>(options_.rank) + 1;
  }

  void pass_comm(std::uint64_t number) {
    std::uint32_t index;
    flight::CommEntry* comm = writer_.open_comm(&index);
    if (!comm) return;
    comm->origin = flight::CommOrigin::kInit;
    comm->id = number << 32 | static_cast<std::uint32_t>(options_.rank);
    comm->rank = 0;
    comm->size = 1;
    comm->ready_ns = comm->end_ns = now();
    comm->state = flight::CommState::kDestroyed;
  }

  void begin_step(std::int64_t step) {
    writer_.header().step = step;
    auto visit = writer_.open_visit();
    visit->kind = flight::VisitKind::kStep;
    visit->time_ns = now();
    visit->step = step;
    visit->calls_before = writer_.header().call_head;
    visit->training = 2;
    visit.complete();
  }

  void call(const std::string& op, std::int64_t count, bool returns) {
    auto record = writer_.open_call();
    record->number = ++calls_;
    record->count = static_cast<std::uint64_t>(count);
    record->op = op == kOps[1].name ? 1 : 0;
    record->dtype = flight::DType::kF32;
    record->reduce_op = record->op ? flight::ReduceOp::kNone : flight::ReduceOp::kSum;
    record->root_or_peer = -1;
    record->comm = comm_;
    record->step = writer_.header().step;
    record->enter_ns = now();
    if (returns) finish(*record.operator->());
    writer_.comm(comm_).calls = calls_;
    record.complete();
  }

  static void finish(flight::CallRecord& record) {
    std::uint64_t at = now();
    record.return_ns = at;
    record.done_ns = at;
    record.flags = flight::kCallReturned | flight::kCallMarked | flight::kCallDone;
  }
  void finish() {
    if (auto* record = writer_.call(writer_.header().call_head - 1)) finish(*record);
  }

  Options options_;
  flight::Writer writer_;
  std::string line_;
  int memory_ = -1, socket_ = -1;
  std::uint32_t comm_ = 0;
  std::uint64_t calls_ = 0;
};

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--job") options.job = std::strtoull(value, nullptr, 16);
    if (name == "--rank") options.rank = options.local_rank = std::atoi(value);
    if (name == "--local-rank") options.local_rank = std::atoi(value);
    if (name == "--world") options.world = std::atoi(value);
    if (name == "--restart") options.restart = std::atoi(value);
    if (name == "--seal") options.seal = std::atoi(value) != 0;
    if (name == "--pidfd") options.hand_over_pidfd = std::atoi(value) != 0;
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  FakeRank rank(options_of(argc, argv));
  if (!rank.connect()) FakeRank::say("no monitor");
  while (rank.obey()) {
  }
}
