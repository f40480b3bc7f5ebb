#include "core/job/text_context.h"

#include <algorithm>

namespace dshang::job {
namespace {

constexpr std::uint32_t kCounted = flight::kOpCollective | flight::kOpSend | flight::kOpRecv;

// Enough for any program; a program that only ever enters replaces the innermost.
constexpr std::size_t kDeepest = 256;

void push(std::vector<NameId>& stack, NameId name) {
  if (stack.size() == kDeepest) stack.pop_back();
  stack.push_back(name);
}

void pop(std::vector<NameId>& stack) {
  if (!stack.empty()) stack.pop_back();
}

}  // namespace

const std::vector<flight::OpInfo>& default_ops() {
  using namespace flight;
  static const std::vector<OpInfo> ops = {
      {"all_gather", kOpCollective, 0},
      {"all_reduce", kOpCollective | kOpReduces, 0},
      {"reduce_scatter", kOpCollective | kOpReduces, 0},
      {"broadcast", kOpCollective | kOpRooted, 0},
      {"reduce", kOpCollective | kOpReduces | kOpRooted, 0},
      {"all_to_all", kOpCollective, 0},
      {"gather", kOpCollective | kOpRooted, 0},
      {"scatter", kOpCollective | kOpRooted, 0},
      {"send", kOpSend, 0},
      {"recv", kOpRecv, 0},
      {"put_signal", kOpOneSided, 0},
      {"split", kOpLifeCycle, 0},
      {"shrink", kOpLifeCycle, 0},
      {"finalize", kOpLifeCycle, 0},
      {"destroy", kOpLifeCycle, 0},
      {"abort", kOpLifeCycle, 0},
  };
  return ops;
}

TextContext::Counter TextContext::counter(const Call& call, std::uint32_t traits) {
  if (traits & flight::kOpSend) return {call.comm, 1, call.root_or_peer};
  if (traits & flight::kOpRecv) return {call.comm, 2, call.root_or_peer};
  return {call.comm, 0, 0};
}

std::uint64_t TextContext::next_number(const Call& call, std::uint32_t traits) const {
  if (!(traits & kCounted) || (call.flags & flight::kCallFailed)) return 0;
  auto found = numbers_.find(counter(call, traits));
  return found == numbers_.end() ? 1 : found->second + 1;
}

std::uint64_t TextContext::collectives(std::uint32_t comm) const {
  auto found = numbers_.find({comm, 0, 0});
  return found == numbers_.end() ? 0 : found->second;
}

void TextContext::pass(const Call& call, std::uint32_t traits) {
  if (call.torn) return;
  if (call.number && (traits & kCounted)) numbers_[counter(call, traits)] = call.number;
  at_ns_ = call.enter_ns;
  step_ = call.step;
}

void TextContext::pass(const Visit& visit) {
  if (visit.torn) return;
  at_ns_ = visit.time_ns;
  step_ = visit.step;
  micro_ = visit.micro;
  switch (visit.kind) {
    case flight::VisitKind::kStep:
      announced_step_ = visit.step;
      break;
    case flight::VisitKind::kPhasePush:
      push(phases_, visit.phase);
      break;
    case flight::VisitKind::kPhasePop:
      pop(phases_);
      break;
    case flight::VisitKind::kModuleEnter:
      push(modules_, visit.module);
      break;
    case flight::VisitKind::kModuleExit:
      pop(modules_);
      break;
    default:
      break;
  }
}

std::uint32_t default_world_rank(const RankRecords& records) {
  for (const Comm& comm : records.comms) {
    if (comm.size > 0 && comm.size == records.world_size && comm.rank >= 0) {
      return static_cast<std::uint32_t>(comm.rank) + 1;
    }
  }
  return 0;
}

}  // namespace dshang::job
