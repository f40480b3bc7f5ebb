#include "watch.h"

#include <algorithm>

#include "core/job/model.h"
#include "core/job/trigger.h"
#include "detectors/run.h"

namespace dshang::schedules {
namespace {

constexpr double kPoll = 0.05;       // seconds between two looks, about
constexpr double kPollStill = 0.25;  // while nothing happens any more: the same looks, fewer of them
constexpr double kSampleElse = 5, kSampleSuspicious = 1, kStacksEvery = 5;

class Monitor {
 public:
  Monitor(Recorder& recorder, Watched& watched) : recorder_(recorder), watched_(watched) {}

  void look(double now) {
    recorder_.look(now);
    if (now >= next_sample_) {
      recorder_.sample(now);
      next_sample_ = now + (trigger_.suspicious() ? kSampleSuspicious : kSampleElse);
    }
    if (now >= stacks_at_) {
      for (std::size_t process : wanted_) recorder_.stack_of(process, now);
      wanted_.clear();
      stacks_at_ = kNever;
    }
    if (trigger_.look(recorder_.job())) analyse(now);
    if (trigger_.suspicious()) next_sample_ = std::min(next_sample_, now + kSampleSuspicious);
  }

  void analyse(double now) {
    ++watched_.analyses;
    dshang::job::Analysis analysis = detect::analyse(recorder_.job());
    if (!analysis.wants_stacks.empty() && now >= asked_ + kStacksEvery) {
      wanted_ = analysis.wants_stacks;
      asked_ = now;
      stacks_at_ = now + kPoll;
    }
    bool has_news = false;
    watched_.report = history_.update(recorder_.job(), std::move(analysis), &has_news);
    if (!has_news) return;
    for (const dshang::job::Finding& finding : watched_.report.findings) {
      bool known = std::any_of(watched_.said.begin(), watched_.said.end(), [&](const Said& one) {
        return one.type == finding.type && one.severity == finding.severity;
      });
      if (!known) watched_.said.push_back({now, finding.type, finding.severity});
    }
  }

 private:
  Recorder& recorder_;
  Watched& watched_;
  dshang::job::Trigger trigger_;
  dshang::job::FindingHistory history_;
  double next_sample_ = 0, asked_ = -kStacksEvery, stacks_at_ = kNever;
  std::vector<std::size_t> wanted_;
};

}  // namespace

double last_event(const History& history) {
  double last = 0;
  for (const RankTimes& rank : history.ranks) {
    auto add = [&](double time) {
      if (time != kNever) last = std::max(last, time);
    };
    for (const CallTimes& call : rank.calls)
      add(call.enter), add(call.returned), add(call.done), add(call.reached);
    add(rank.ended), add(rank.mishap), add(rank.last);
  }
  return last;
}

Watched watch(const Job& job, const History& history, const std::vector<Mishap>& mishaps, Recorder& recorder,
              Rng& rng) {
  Watched watched;
  Monitor monitor(recorder, watched);
  double last = last_event(history);
  double step = 3 * std::max(job.stall_after, 1.0);
  double until = last + step;
  double now = 0.25;
  for (; now < until && !recorder.everybody_has_ended(now);
       now += (now < last + 4 ? kPoll : kPollStill) * rng.real(0.7, 1.3)) {
    monitor.look(now);
  }
  monitor.look(now);
  monitor.analyse(now);
  watched.until = now;
  watched.hangs = !recorder.everybody_has_ended(now);
  dshang::job::JobView view = dshang::job::make_view(recorder.job());
  watched.comm_names.resize(job.comms.size());
  for (const dshang::job::CommView& comm : view.comms) watched.comm_names[comm.id - 1000] = comm.name;
  for (const dshang::job::RankView& rank : view.ranks) {
    bool struck =
        !mishaps.empty() && mishaps[static_cast<std::size_t>(rank.rank)].kind != Mishap::Kind::kNone;
    if (struck) continue;  // it is waited for
    const auto& calls = rank.records().calls;
    for (std::uint64_t n = calls.first(); n < calls.end(); ++n)
      watched.shown |= rank.alive() && dshang::job::is_outstanding(calls.at(n));
  }
  return watched;
}

}  // namespace dshang::schedules
