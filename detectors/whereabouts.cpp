#include "detectors/whereabouts.h"

#include "detectors/progress.h"
#include "detectors/words.h"

namespace dshang::detect {

using job::RankView;

std::string place(const JobView& view, job::SiteId site) {
  std::string at = site ? view.names().place_text(view.names().place_of(site)) : "";
  return at.empty() ? "" : " at " + at;
}

const job::Call* oldest_outstanding(const RankView& rank) {
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    if (!calls.at(n).torn && job::waits_in(rank, calls.at(n))) return &calls.at(n);
  }
  return nullptr;
}

const job::Stack* newest_stack(const RankView& rank) {
  const auto& stacks = rank.records().stacks;
  for (std::uint64_t n = stacks.end(); n-- > stacks.first();) {
    const job::Stack& stack = stacks.at(n);
    if (stack.tid == static_cast<std::uint32_t>(rank.records().pid) && stack.site) return &stack;
  }
  return nullptr;
}

std::optional<std::string> torch_function(const JobView& view, const RankView& rank, std::uint64_t since_ns) {
  const job::Stack* stack = newest_stack(rank);
  if (!stack || stack->time_ns < since_ns) return std::nullopt;
  const job::Site& site = view.names().site(stack->site);
  if (site.frames.empty()) return std::nullopt;
  // Below torch's own there may be frames of what it calls, e.g. of a dispatch mode, never one of the user's.
  const job::FrameName& user = view.names().place_frame(site.user_place);
  for (const job::FrameName& frame : site.frames) {
    if (site.user_place && frame.line == user.line && frame.function == user.function) break;
    if (view.names().text(frame.file).find("torch/distributed/") != std::string::npos)
      return view.names().text(frame.function);
  }
  return "";
}

std::string waits_in_text(const JobView& view, std::size_t r, const job::Call& call) {
  const RankView& rank = view.ranks[r];
  const auto& comms = rank.records().comms;
  const job::CommView* comm = call.comm < comms.size() ? view.by_id(comms[call.comm].id) : nullptr;
  return "waits in call " + std::to_string(call.number) + " of " +
         (comm ? comm->name : std::string("another communicator")) + " (" + view.op_name(rank, call) +
         place(view, call.site) + ")";
}

std::string whereabouts(const JobView& view, std::size_t r) {
  const RankView& rank = view.ranks[r];
  if (const job::Call* call = oldest_outstanding(rank)) return waits_in_text(view, r, *call);
  if (!rank.alive() && lasted(view, rank, last_activity(view, rank)) < view.stall_after()) return "has ended";
  if (job::creating_since(rank)) return "is creating another communicator";
  Progress p = progress_of(view, rank, view.stall_after());
  std::string text = "is on the host";
  if (!p.innermost.empty()) text += " in " + p.innermost;
  if (p.known) text += p.advances() ? " and makes progress" : " and makes no progress";
  return text;
}

}  // namespace dshang::detect
