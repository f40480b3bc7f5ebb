#include "monitor/unheard_watch.h"

#include <chrono>
#include <memory>

#include "monitor/clock.h"

namespace dshang::monitor {
namespace {

constexpr std::uint64_t kFirstLook = 2 * kSecond, kLookEvery = 5 * kSecond;
constexpr std::uint64_t kPatience = 60 * kSecond;

}  // namespace

void UnheardWatch::round(const State& state, Worker& worker, JobOutput& output, std::uint64_t now) {
  std::uint64_t age = elapsed(state.first_attach_ns, now);
  if (done_ || age < kFirstLook || now < next_look_ns_ || state.world_size <= 0) return;
  next_look_ns_ = now + kLookEvery;
  Ranks missing;
  for (std::int32_t rank = 0; rank < state.world_size; ++rank) {
    if (!state.heard.contains(rank) && !said_.contains(rank)) missing.insert(rank);
  }
  if (missing.empty()) return;
  look_here(missing, output);
  if (age >= kPatience) look_elsewhere(state, std::move(missing), worker, output);
}

void UnheardWatch::look_here(const Ranks& missing, JobOutput& output) {
  std::vector<RankProcess> processes = processes_of(missing);
  here_ = with_library(processes);
  std::map<std::int32_t, RankProcess> without = without_library(processes);
  if (without.empty()) return;
  output.say(text_of(without));
  for (const auto& [rank, process] : without) said_.insert(rank);
}

void UnheardWatch::look_elsewhere(const State& state, Ranks missing, Worker& worker, JobOutput& output) {
  if (!elsewhere_.valid()) {
    auto found = std::make_shared<std::promise<Ranks>>();
    elsewhere_ = found->get_future();
    worker.post([found, directory = state.directory] { found->set_value(ranks_of_other_nodes(directory)); });
    return;
  }
  if (elsewhere_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  done_ = true;
  for (const Ranks& known : {elsewhere_.get(), here_, said_}) {
    for (std::int32_t rank : known) missing.erase(rank);
  }
  if (!missing.empty()) output.say(text_of_unheard(missing, state.directory));
}

}  // namespace dshang::monitor
