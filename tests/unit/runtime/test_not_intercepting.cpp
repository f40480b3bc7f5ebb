// The one loud line about an NCCL that no wrapper sees.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "catch.h"
#include "fakes.h"
#include "interpose/runtime/not_intercepting.h"

using dshang::interpose::NotIntercepting;

namespace {

constexpr std::uint64_t kSecond = 1000000000;

// What is written to stderr while it lives.
class Stderr {
 public:
  Stderr() : kept_(dup(2)) {
    REQUIRE(pipe2(ends_, O_NONBLOCK) == 0);
    dup2(ends_[1], 2);
  }
  ~Stderr() {
    dup2(kept_, 2);
    for (int fd : {ends_[0], ends_[1], kept_}) close(fd);
  }
  std::string text() {
    char bytes[4096];
    ssize_t length = read(ends_[0], bytes, sizeof bytes);
    return length > 0 ? std::string(bytes, static_cast<std::size_t>(length)) : "";
  }

 private:
  int kept_, ends_[2];
};

class NamedThread {
 public:
  explicit NamedThread(const char* name) : thread_([this, name] {
      prctl(PR_SET_NAME, name);
      named_ = true;
      while (!over_) std::this_thread::yield();
    }) {
    while (!named_) std::this_thread::yield();
  }
  ~NamedThread() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> named_{false}, over_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("a communicator without any call is said once, after a minute") {
  fakes::nccl_was_seen = false;
  Stderr out;
  NotIntercepting watch(kSecond);
  watch.look(kSecond);
  watch.look(200 * kSecond);
  CHECK(out.text().empty());
  NamedThread watchdog("pt_nccl_watchdg");  // a group that has not communicated yet
  for (std::uint64_t t = 200; t < 300; t += 5) watch.look(t * kSecond);
  CHECK(out.text().empty());
  NamedThread service("NCCL Service  0");
  for (std::uint64_t t = 310; t < 370; t += 5) watch.look(t * kSecond);
  CHECK(out.text().empty());
  watch.look(370 * kSecond);
  std::string said = out.text();
  CHECK(said.rfind("dshang: NOT INTERCEPTING", 0) == 0);
  CHECK(said.find('\n') == said.size() - 1);
  watch.look(500 * kSecond);
  CHECK(out.text().empty());
  fakes::nccl_was_seen = true;
}

TEST_CASE("nothing is said where calls are seen") {
  Stderr out;
  NamedThread service("NCCL Service  0");
  NotIntercepting watch(kSecond);
  for (std::uint64_t t = 1; t < 200; t += 5) watch.look(t * kSecond);
  CHECK(out.text().empty());
}
