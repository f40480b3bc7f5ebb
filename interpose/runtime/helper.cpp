#include "interpose/runtime/helper.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/rank/base_libc.h"
#include "core/rank/pyframes.h"
#include "interpose/runtime/api.h"
#include "interpose/runtime/keeper.h"
#include "interpose/runtime/log.h"
#include "interpose/runtime/memory.h"
#include "interpose/runtime/monitor_link.h"
#include "interpose/runtime/not_intercepting.h"
#include "interpose/runtime/ordered_failure.h"
#include "interpose/runtime/process.h"

namespace dshang::interpose::helper {
namespace {

constexpr int kArmEvery = 100, kLookEvery = 1000;     // ms
constexpr std::uint64_t kPeriod = 1000000000;         // ns
constexpr std::uint64_t kHandOverTakes = 1000000000;  // ns, at most

MonitorLink link_to_monitor;

// The kernel module's version, e.g. "570.86.15"; no file where there is no NVIDIA driver.
void record_driver_version(const flight::Writer& writer) {
  int fd = open("/sys/module/nvidia/version", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char text[64];
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return;
  text[length] = 0;
  text[strcspn(text, "\n")] = 0;
  writer.fact("version.driver", text);
}

void* run(void*) {
  prctl(PR_SET_NAME, "dshang");
  const flight::Writer writer = *runtime::recorder();
  touch_flight_memory(process::awake().memory);
  std::uint32_t own = writer.thread(rank::kernel_thread_id());
  if (own < flight::kThreadEntries) writer.thread_entry(own).flags.fetch_or(flight::kThreadOwn);
  record_driver_version(writer);
  NotIntercepting not_intercepting(rank::now_ns());
  // Before anything slow: what the program makes until then (its model) is not seen being made.
  bool armed = rank::arm_python(writer);
  std::uint64_t next_period_ns = rank::now_ns() + kPeriod;
  for (;;) {
    int wait = link_to_monitor.advance(writer, rank::now_ns());
    int longest = armed ? kLookEvery : kArmEvery;
    pollfd connection{link_to_monitor.descriptor(), POLLIN, 0};
    int ready = poll(&connection, 1, wait < longest ? wait : longest);
    if (ready > 0) link_to_monitor.receive(writer, rank::now_ns());
    if (!armed) armed = rank::arm_python(writer);
    keeper::tidy();
    std::uint64_t now = rank::now_ns();
    not_intercepting.look(now);
    if (now >= next_period_ns) {
      memory::memory_period();
      next_period_ns = now + kPeriod;
    }
  }
}

}  // namespace

void start() {
  link_to_monitor.expect();
  if (!rank::start_thread(run, nullptr)) {
    link_to_monitor.forget();
    DSHANG_LOG_ONCE("no helper thread could be started; nothing is reported for this rank, training goes on");
  }
}

void wait_for_hand_over() {
  const flight::Writer* writer = runtime::recorder();
  if (!writer || writer->header().comm_count.load(std::memory_order_relaxed) == 0) return;
  const std::uint64_t begin_ns = rank::now_ns();
  while (link_to_monitor.is_due() && rank::now_ns() - begin_ns < kHandOverTakes) {
    rank::sleep_ms(1);
  }
}

void fall_asleep() {
  link_to_monitor.forget();
  ordered_failure::forget();
  keeper::forget();
}

}  // namespace dshang::interpose::helper
