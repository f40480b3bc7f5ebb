#include "monitor/ending.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "monitor/clock.h"
#include "monitor/proc.h"

namespace dshang::monitor {
namespace {

// First published size of struct pidfd_info; later kernels accept it.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t ids[11];  // pid, tgid, ppid and credentials
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);

constexpr std::uint64_t kPidfdInfoExit = 1u << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

job::Death from_status(std::int32_t status) {
  job::Death death;
  death.known = job::EndingKnown::kStatus;
  death.by_signal = WIFSIGNALED(status);
  death.code = death.by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
  return death;
}

job::Death from_record(flight::EndingKind kind, std::int32_t code) {
  job::Death death;
  death.known = job::EndingKnown::kRecord;
  death.by_signal = kind != flight::EndingKind::kExit;
  death.code = kind == flight::EndingKind::kAbort ? SIGABRT : code;
  if (!death.by_signal) death.code &= 0xff;  // all that a parent sees of it
  return death;
}

}  // namespace

std::optional<std::int32_t> reaped_status(int pidfd) {
  if (pidfd < 0) return std::nullopt;
  PidfdInfo info{};
  info.mask = kPidfdInfoExit;
  if (ioctl(pidfd, kPidfdGetInfo, &info) != 0 || !(info.mask & kPidfdInfoExit)) return std::nullopt;
  return info.exit_code;
}

std::optional<std::int32_t> zombie_status(std::int32_t pid, std::uint64_t start_ticks) {
  auto stat = read_stat(process_path(pid));
  if (!stat || stat->start_ticks != start_ticks || (stat->state != 'Z' && stat->state != 'X'))
    return std::nullopt;
  return stat->exit_code;
}

job::Death death_of(flight::EndingKind kind, std::int32_t code, std::optional<std::int32_t> zombie,
                    std::optional<std::int32_t> reaped) {
  std::optional<job::Death> record, status;
  if (kind != flight::EndingKind::kNone) record = from_record(kind, code);
  if (reaped) {
    status = from_status(*reaped);
  } else if (zombie && (*zombie != 0 || !record)) {
    status = from_status(*zombie);
  }
  if (record && (!status || (status->by_signal == record->by_signal && status->code == record->code)))
    return *record;
  return status.value_or(job::Death{});
}

job::Death read_death(const job::RankRecords& records, std::int32_t pid, int pidfd) {
  // A parent may reap between two questions: then the second one is answered.
  auto zombie = zombie_status(pid, records.pid_start_ticks);
  job::Death death = death_of(records.ending, records.ending_code, zombie, reaped_status(pidfd));
  death.time_ns = now_ns();
  return death;
}

}  // namespace dshang::monitor
