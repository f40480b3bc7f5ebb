#include "monitor/left_behind.h"

#include <algorithm>
#include <exception>
#include <filesystem>

#include "monitor/disk.h"
#include "monitor/proc.h"

namespace dshang::monitor {
namespace {

namespace fs = std::filesystem;

bool lives(const job::Process& process) {
  if (process.journal.death) return false;
  auto stat = read_stat(process_path(process.journal.pid));
  return stat && stat->state != 'Z' && stat->start_ticks == process.journal.pid_start_ticks;
}

}  // namespace

std::optional<LeftBehind> find_left_behind(const Settings& settings) {
  try {
    int number = newest_attempt(settings.spool);
    if (number == 0) return std::nullopt;
    std::string note = read_file(settings.spool + "/attempt-" + std::to_string(number) + "/directory");
    fs::path attempt = note.substr(0, note.find('\n'));
    LeftBehind left;
    left.number = number;
    left.place = {attempt.parent_path().string(), settings.spool, settings.host,
                  !attempt.parent_path().filename().string().starts_with("node-")};
    left.replay = replay({attempt.string()});
    // That is still to be found, and said.
    if (left.replay.unseen_ns != 0) left.replay.moments.pop_back();
    const auto& processes = left.replay.job->processes;
    if (std::none_of(processes.begin(), processes.end(), [](const auto& one) { return lives(*one); }))
      return std::nullopt;
    return left;
  } catch (const std::exception&) {
    return std::nullopt;  // then the job gets a new attempt
  }
}

}  // namespace dshang::monitor
