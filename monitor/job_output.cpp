#include "monitor/job_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>

namespace dshang::monitor {
namespace {

constexpr int kPatienceMs = 200;

void woken(int) {}

// Lets a write that blocks although poll() promised room (another process filled the pipe meanwhile) end by a
// signal.
class AlarmDuring {
 public:
  AlarmDuring() {
    struct sigaction action {};
    action.sa_handler = woken;
    sigaction(SIGALRM, &action, &before_);
    itimerval timer{{0, 100000}, {0, kPatienceMs * 1000}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  ~AlarmDuring() {
    itimerval off{};
    setitimer(ITIMER_REAL, &off, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

bool write_once(int fd, std::string_view text) {
  pollfd wait{fd, POLLOUT, 0};
  if (poll(&wait, 1, kPatienceMs) != 1 || !(wait.revents & POLLOUT)) return false;
  AlarmDuring alarm;
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

void JobOutput::add(std::uint64_t key, std::int32_t rank, Descriptor output) {
  if (!output) return;
  int flags = fcntl(output.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return;
  outputs_[key] = {rank, std::move(output)};
}

void JobOutput::remove(std::uint64_t key) { outputs_.erase(key); }

bool JobOutput::say(std::string_view line) const { return write("dshang: " + std::string(line) + "\n"); }

bool JobOutput::write(std::string_view text) const {
  text = text.substr(0, kLongestBlock);
  const Output* chosen = nullptr;
  for (const auto& [key, output] : outputs_) {
    bool lower = !chosen || (output.rank >= 0 && (chosen->rank < 0 || output.rank < chosen->rank));
    if (lower) chosen = &output;
  }
  return chosen && write_once(chosen->descriptor.get(), text);
}

}  // namespace dshang::monitor
