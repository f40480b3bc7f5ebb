#include "monitor/top/one_moment.h"

#include <algorithm>

#include "monitor/as_of.h"
#include "monitor/clock.h"

namespace dshang::monitor {
namespace {

constexpr std::uint64_t kCopiesApart = 5 * kSecond;  // DSHANG_PERSIST, and a busy disk

}  // namespace

std::uint64_t take_one_moment(job::Job& job) {
  std::uint64_t newest = 0, moment = UINT64_MAX;
  for (const auto& process : job.processes) {
    if (process->records.host != job.processes[0]->records.host) return 0;
    if (!process->journal.death) newest = std::max(newest, newest_time(process->records));
  }
  for (const auto& process : job.processes) {
    const std::uint64_t copied = process->journal.death ? 0 : process->records.poll_ns;
    if (copied != 0 && copied + kCopiesApart >= newest) moment = std::min(moment, copied);
  }
  if (moment == UINT64_MAX) return 0;
  for (auto& process : job.processes) {
    process->records = as_of(process->records, moment);
    process->journal = as_of(process->journal, moment);
  }
  job.journal.now_ns = moment;
  return moment;
}

}  // namespace dshang::monitor
