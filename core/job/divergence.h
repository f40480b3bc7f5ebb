// Where the ranks of a communicator part, and how (DESIGN.md section 8, points 1 to 4).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/job/token.h"

namespace dshang::job {

// First position at which the members of a communicator disagree in what NCCL sees.
struct Visible {
  enum class Kind {
    kArguments,  // op or arguments differ
    kMissing,    // some wait in this call, others have not made it
  };
  Kind kind;
  Seq call;
};

// Linear in the number of calls; nullopt when nothing differs and nobody waits for a missing member.
std::optional<Visible> find_visible(const JobView& view, const CommView& comm);

// What was made of a step's forward and backward pass.
struct Passes {
  std::size_t forward = 0;  // module visits, or gathers where calls are compared
  std::size_t backward = 0;
};

// The same stretch of tokens, made another number of times by the two sides.
struct Repetition {
  Tokens round;              // empty: nothing of the kind
  std::size_t told = 0;      // rounds begun by those that are told of, up to where they went on
  std::size_t others = 0;    // and by the others
  bool told_inside = false;  // the last of these rounds is begun, and not known to be finished
  bool others_inside = false;
  Passes passes;  // of rounds of a backward pass: what stands before the parting
  explicit operator bool() const { return !round.empty(); }
};

// How the suspects' tokens go on from where they part from the others'.
struct Story {
  enum class Kind {
    kNone,         // purposes do not part: at most the arguments differ
    kSilent,       // the suspects have done nothing since; the others went on
    kDeletion,     // they left out `left_out` and went on with `next`
    kInsertion,    // they did `added`, which the others did not
    kExchange,     // something else in the same place, everything around agrees
    kPermutation,  // the same in another order
    kUnknown,      // they part, and nothing recorded says how
  };
  Kind kind = Kind::kNone;
  bool from_visits = false;   // decided on module visits; else on calls
  bool places_known = false;  // call sites took part
  Tokens left_out, added;
  Tokens or_left_out;     // kInsertion of the call directly before: leaving out these reads the same
  Repetition repetition;  // of what was left out or added
  std::size_t forward_before = 0, backward_before = 0;  // of the step, made by both sides before they part
  bool leaves_out_another_backward =
      false;                    // what is left out is a backward pass of modules that had one in this step
  Tokens not_compared;  // visits: one of each kind that ranks make in their own way (visit_sequences.h)
  std::vector<Token> next;      // 0 or 1: the first thing the suspects did where they part
  std::vector<Token> expected;  // 0 or 1: what the others did there
  bool leaves_out_all_reductions = false;  // nothing that reduces is left of the step (calls)
  bool no_forward_follows =
      false;                // visits: no forward module was visited after the gap, the step being that far
  bool resumed = false;     // kInsertion: behind what they added they do what the others do
  bool is_new = false;      // what is left out or added was never made there before
  bool loop_ended = false;  // the suspects' loader was exhausted
  bool teardown = false;    // they are going away
  bool others_went_on = false;  // kDeletion: the others are past what was left out, at what follows it
  bool came_round = false;  // kDeletion: the suspects have made again what stands before it, without it: it
                            // does not come later
};

struct Divergence {
  const CommView* comm = nullptr;
  Visible visible;
  std::optional<Seq> origin, agreed_until;
  bool origin_proven = false;   // purposes show it
  Seq ambiguous_from = 0;       // calls from here up to the visible one have equal arguments and no known
                                // purposes: they cannot be told apart; 0 = none
  std::vector<Rank> suspects;   // empty: a tie
  bool by_own_history = false;  // no majority: the suspects depart from their own earlier steps
  std::vector<Rank> waiting;
  std::vector<Rank> missing;  // members that have not made the visible call
  std::vector<Side> sides;
  std::optional<std::int64_t> step;
  Rank witness = -1;  // a rank of the other side, whose tokens the story was compared with
  Rank told_of = -1;  // the suspect whose tokens the story tells
  Story story;
  std::uint64_t since_ns = 0;  // when the disagreement began to exist: the later of the two calls
};

std::optional<Divergence> find_divergence(const JobView& view, const CommView& comm);

// What a call looks like as a side; `site` falls back to the module's last forward visit in backward.
Side side_of(const JobView& view, const Member& member, const Call& call);

// Members that wait in a call numbered `call` or later.
std::vector<Rank> waiting_from(const JobView& view, const CommView& comm, Seq call);

}  // namespace dshang::job
