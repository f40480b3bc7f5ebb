#include "monitor/host_watch.h"

#include <unistd.h>

#include <algorithm>

#include "monitor/clock.h"

namespace dshang::monitor {
namespace {

// Threads and processes are told from later ones of the same number by their start.
std::uint64_t key_of(std::int32_t id, std::uint64_t start_ticks) {
  return (std::uint64_t(static_cast<std::uint32_t>(id)) << 40) ^ start_ticks;
}

std::uint64_t boot_ticks() {
  static const std::uint64_t per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return clock_ns(CLOCK_BOOTTIME) / (kSecond / per_second);
}

}  // namespace

void GrowingSum::part(std::uint64_t key, std::uint64_t value, bool old) {
  auto [at, is_new] = parts_.try_emplace(key, Part{value, true});
  if (is_new) {
    if (!old) total_ += value;
    return;
  }
  if (value > at->second.value) total_ += value - at->second.value;
  at->second = {value, true};
}

std::uint64_t GrowingSum::forget_others() {
  std::uint64_t gone = 0;
  for (auto at = parts_.begin(); at != parts_.end();) {
    if (at->second.seen) {
      at->second.seen = false;
      ++at;
    } else {
      gone += at->second.value;
      at = parts_.erase(at);
    }
  }
  return gone;
}

job::HostSample HostWatch::look(const std::vector<job::Thread>& threads, const ProcessTable& processes) {
  job::HostSample sample;
  sample.time_ns = now_ns();
  memory_.look(sample.time_ns);
  std::string path = process_path(pid_);
  auto process = read_stat(path);
  if (!process) return sample;
  sample.state = process->state == 't' ? 'T' : process->state;
  sample.wchan = read_wchan(path);
  sample.syscall = read_syscall(path);
  if (process->state == 'Z') return sample;
  sample.rss_bytes = read_resident(path);

  cpu_known_ = io_known_ = true;
  runnable_ = false;
  bool any = look_at_threads(threads);
  look_at_others(*process, threads);
  look_at_children(*process, processes);
  // In backward the main thread sleeps while another one works, or waits for a core.
  if (sample.state == 'S' && runnable_) sample.state = 'R';
  last_look_ticks_ = boot_ticks();
  if (any && cpu_known_) {
    std::uint64_t told = cpu_threads_.total() + cpu_own_.total();
    sample.cpu_seconds = seconds_of_ticks(cpu_threads_.total() + cpu_children_.total());
    sample.other_cpu_seconds = seconds_of_ticks(cpu_process_.total() - std::min(cpu_process_.total(), told));
  }
  if (any && io_known_) {
    sample.read_bytes = read_.total();
    sample.written_bytes = written_.total();
  }
  read_.forget_others();
  written_.forget_others();
  return sample;
}

// False when nothing could be read.
bool HostWatch::look_at_threads(const std::vector<job::Thread>& threads) {
  std::vector<std::int32_t> tids;
  for (const job::Thread& thread : threads) {
    bool works = thread.flags & (flight::kThreadCalls | flight::kThreadVisits);
    if (thread.tid && works && !(thread.flags & flight::kThreadOwn)) {
      tids.push_back(static_cast<std::int32_t>(thread.tid));
    }
  }
  if (tids.empty()) tids.push_back(pid_);  // the main thread is the one that will make calls
  bool any = false;
  for (std::int32_t tid : tids) {
    std::string path = thread_path(pid_, tid);
    auto stat = read_stat(path);
    if (!stat) continue;  // ended
    any = true;
    runnable_ = runnable_ || stat->state == 'R';
    std::uint64_t key = key_of(tid, stat->start_ticks);
    cpu_threads_.part(key, stat->cpu_ticks, last_look_ticks_ == 0);
    count_io(key, path, last_look_ticks_ == 0);
  }
  cpu_threads_.forget_others();
  return any;
}

// The process's sum holds its threads, also those that ended.
void HostWatch::look_at_others(const ProcStat& process, const std::vector<job::Thread>& threads) {
  cpu_process_.part(key_of(pid_, process.start_ticks), process.cpu_ticks, last_look_ticks_ == 0);
  for (const job::Thread& thread : threads) {
    if (!thread.tid || !(thread.flags & flight::kThreadOwn)) continue;
    auto tid = static_cast<std::int32_t>(thread.tid);
    if (auto stat = read_stat(thread_path(pid_, tid)))
      cpu_own_.part(key_of(tid, stat->start_ticks), stat->cpu_ticks, last_look_ticks_ == 0);
  }
  cpu_own_.forget_others();
}

void HostWatch::look_at_children(const ProcStat& process, const ProcessTable& processes) {
  for (std::int32_t child : processes.descendants(pid_)) {
    std::string path = process_path(child);
    auto stat = read_stat(path);
    if (!stat) continue;
    runnable_ = runnable_ || stat->state == 'R';
    bool old = stat->start_ticks <= last_look_ticks_ || last_look_ticks_ == 0;
    std::uint64_t key = key_of(child, stat->start_ticks);
    cpu_children_.part(key, stat->cpu_ticks + stat->reaped_ticks, old);
    if (stat->state != 'Z') count_io(key, path, old);
  }
  // A child that ended was counted while it lived; its parent's sum gets all of it once more.
  std::uint64_t gone = cpu_children_.forget_others();
  std::uint64_t reaped = process.reaped_ticks - std::min(process.reaped_ticks, last_reaped_);
  if (last_look_ticks_ != 0 && reaped > gone) cpu_children_.add(reaped - gone);
  last_reaped_ = process.reaped_ticks;
}

void HostWatch::count_io(std::uint64_t key, const std::string& path, bool old) {
  auto io = read_io(path);
  if (!io) {
    io_known_ = false;
    return;
  }
  read_.part(key, io->read, old);
  written_.part(key, io->written, old);
}

}  // namespace dshang::monitor
