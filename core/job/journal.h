// What the monitor saw of a process from outside: attaching, endings, CPU, I/O, where its threads sleep.
//
// Live it is filled by the monitor; `dshang report DIR` reads it back from flight/monitor.log, which holds
// one JSON object a line (journal.cpp has both directions), so that the detectors see the same either way.
// Times are CLOCK_MONOTONIC nanoseconds of the monitor's machine.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace dshang::job {

enum class EndingKnown {
  kNo,      // nothing recorded it and nothing could be asked: SIGKILL is likely
  kRecord,  // the process wrote it into its flight memory before it ended
  kStatus,  // wait status of the kernel (zombie's /proc stat, PIDFD_GET_INFO)
};

struct Death {
  std::uint64_t time_ns = 0;
  EndingKnown known = EndingKnown::kNo;
  bool by_signal = false;
  std::int32_t code = 0;  // exit status, or signal number
  // Processes that the kernel's OOM killer ended in the last seconds in this one's control group (without one: on the
  // machine); 0 = none, or not known.  It ends them by SIGKILL.
  std::uint64_t oom_kills = 0;
  std::uint64_t memory_limit = 0;  // of the control group, else the machine's memory; 0 = not known
  bool limit_is_of_group = false;
};

inline constexpr std::size_t kSamplesKept = 600;

// One look at /proc.  Sums are over the threads that made this rank's calls or visits and over its child
// processes, never dshang's own threads; a value that could not be read is absent, which is not "no
// progress".
struct HostSample {
  std::uint64_t time_ns = 0;
  std::optional<double> cpu_seconds;
  std::optional<double> other_cpu_seconds;                 // of its other threads, without dshang's own
  std::optional<std::uint64_t> read_bytes, written_bytes;  // rchar/wchar: what the program asked for
  char state = '?';                                        // of the main thread: R S D T Z; R, too, where only others want a core
  std::string wchan;                                       // where the main thread sleeps, "" unknown
  std::string syscall;                                     // name of the system call it is in, "" unknown
  std::optional<std::uint64_t> rss_bytes;                  // resident memory of the process
  std::uint64_t graph_launches = 0;                        // CUDA graphs replayed so far, from its flight memory
};

struct ProcessJournal {
  std::int32_t pid = 0;  // as in the flight memory
  std::uint64_t pid_start_ticks = 0;
  std::uint64_t attach_ns = 0;
  std::optional<Death> death;
  std::vector<HostSample> samples;  // oldest first; the last kSamplesKept
};

struct Journal {
  std::uint64_t start_ns = 0;  // job start: the first process's wake
  std::uint64_t start_real_ns = 0;
  std::uint64_t now_ns = 0;  // as of
  std::string host;
  std::string dir;  // DSHANG_DIR
  std::int32_t attempt = 1;
  std::vector<std::string> parameters;  // "DSHANG_STALL_AFTER=10": what the analysis was told
  std::vector<ProcessJournal> processes;
  bool has_end = false;  // the monitor saw the job's end, and wrote all it had to say
};

// One line a piece of news, appended as it happens; reading the lines in order gives the journal.
std::string line_of_start(const Journal& journal);
std::string line_of_attach(const ProcessJournal& process);
std::string line_of_death(const ProcessJournal& process);
std::string line_of_sample(const ProcessJournal& process, const HostSample& sample);
std::string line_of_time(std::uint64_t now_ns);  // the newest one is `now_ns`
std::string line_of_end();  // the last one; missing where the monitor did not live to write it

// Reads what the lines above wrote.  Throws std::runtime_error naming line and reason.
Journal read_journal(std::istream& in);

}  // namespace dshang::job
