#include "detectors/side_function.h"

#include <algorithm>

#include "core/job/repetition.h"
#include "core/job/site_policy.h"

namespace dshang::detect {
namespace {

using job::Call;
using job::Member;
using job::Seq;
using job::Story;

// The outermost function on the way to the call that is named so; 0 = none.
job::NameId side_function_of(const JobView& view, const Call& call) {
  if (!call.site) return 0;
  const job::Names& names = view.names();
  job::NameId found = 0;
  for (const job::FrameName& frame : names.site(call.site).frames) {
    bool of_user = job::frame_owner(names.text(frame.file)) == job::FrameOwner::kUser;
    if (of_user && job::is_side_phase(names.text(frame.function))) found = frame.function;
  }
  return found;
}

bool is_in(const JobView& view, const Call& call, job::NameId function) {
  const auto& frames = view.names().site(call.site).frames;
  return std::any_of(frames.begin(), frames.end(),
                     [&](const job::FrameName& frame) { return frame.function == function; });
}

// The function that `inside` is in at its call `at`, while `outside` was not in it at the call with which
// `inside` entered it.
std::string entered_alone(const JobView& view, const Member& inside, const Member& outside, Seq at) {
  if (!inside.has(at)) return {};
  job::NameId function = side_function_of(view, inside.call(at));
  if (!function) return {};
  Seq first = at;
  while (inside.has(first - 1) && inside.call(first - 1).site &&
         is_in(view, inside.call(first - 1), function))
    --first;
  if (first == inside.first || !outside.has(first)) return {};
  const Call& theirs = outside.call(first);
  return theirs.site && !is_in(view, theirs, function) ? view.names().text(function) : std::string{};
}

const Member* member_of(const Divergence& d, Rank rank) {
  for (const Member& member : d.comm->members) {
    if (member.rank == rank) return &member;
  }
  return nullptr;
}

}  // namespace

std::string side_function_left_out(const JobView& view, const Divergence& d) {
  const Member *told = member_of(d, d.told_of), *witness = member_of(d, d.witness);
  bool steps = d.story.repetition && job::holds_step(d.story.repetition.round);  // they go on with those
  bool gap = d.story.kind == Story::Kind::kDeletion || d.story.kind == Story::Kind::kUnknown || steps;
  if (!told || !witness || !gap || d.story.from_visits || d.story.expected.empty()) return {};
  return entered_alone(view, *witness, *told, d.story.expected[0].call->number);
}

std::string side_function_added(const JobView& view, const Divergence& d) {
  const Member *told = member_of(d, d.told_of), *witness = member_of(d, d.witness);
  bool added = d.story.kind == Story::Kind::kInsertion && d.story.resumed && !d.story.next.empty();
  if (!told || !witness || !added || d.story.from_visits) return {};
  return entered_alone(view, *told, *witness, d.story.next[0].call->number);
}

}  // namespace dshang::detect
