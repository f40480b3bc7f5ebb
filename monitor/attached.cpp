#include "monitor/attached.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

#include "monitor/clock.h"
#include "monitor/proc.h"

namespace dshang::monitor {
namespace {

// Process that a pidfd stands for, as seen from here (proc(5), fdinfo); 0 = it is no pidfd, or of a foreign
// namespace; -1 = it is gone.
std::int32_t pid_of(const Descriptor& pidfd) {
  if (!pidfd) return 0;
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(pidfd.get()));
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("Pid:")) return std::atoi(line.c_str() + 4);
  }
  return 0;
}

std::string file_name_of(const flight::Hello& hello, std::int32_t pid) {
  std::string process = std::to_string(pid) + ".flight";
  return hello.rank >= 0 ? "rank-" + std::to_string(hello.rank) + "." + process : "pid-" + process;
}

}  // namespace

std::int32_t Attached::rank() const {
  const job::RankRecords& records = process->records;
  return records.world_rank ? static_cast<std::int32_t>(records.world_rank) - 1 : records.rank;
}

std::unique_ptr<Attached> attach(Connection& connection, Registration registration, std::string* why) {
  auto attached = std::make_unique<Attached>();
  attached->memory = Mapping::map(registration.memory, registration.hello.flight_bytes, why);
  if (!attached->memory) return nullptr;
  attached->reader = flight::Reader(attached->memory->data(), attached->memory->size());
  if (!attached->reader) {
    *why = std::string("the flight memory cannot be read: ") + attached->reader.problem();
    return nullptr;
  }
  attached->pid = connection.peer.pid;
  if (attached->pid > 0) {
    attached->pidfd = std::move(registration.pidfd);
    std::int32_t handed_over = pid_of(attached->pidfd);
    if (handed_over != attached->pid && handed_over != -1) {  // missing, or of somebody else
      attached->pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, attached->pid, 0)));
    }
  }
  const flight::Header& header = attached->reader.header();
  attached->key = (std::uint64_t{static_cast<std::uint32_t>(header.pid)} << 40) ^ header.pid_start_ticks;
  attached->connection = std::move(connection);
  attached->watch = HostWatch(attached->pid);
  attached->file_name = file_name_of(registration.hello, registration.hello.pid);
  return attached;
}

bool still_there(const Attached& attached) {
  if (attached.pid == 0) return static_cast<bool>(attached.connection.socket);
  auto stat = read_stat(process_path(attached.pid));
  if (!stat || stat->state == 'Z' || stat->state == 'X') return false;
  std::uint64_t start = attached.process->records.pid_start_ticks;
  return start == 0 || stat->start_ticks == start;
}

}  // namespace dshang::monitor
