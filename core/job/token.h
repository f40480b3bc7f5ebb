// Tokens: what a rank did, as one sequence of comparable purposes, made from its module visits or from its
// calls.
//
// Two ranks do the same where their keys are equal.  A key leaves out the step number (a step that begins is
// a token of its own) and everything that is not known.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/job/model.h"

namespace dshang::job {

// What a token belongs to: its phase, or where no phase is known a function on the way to it, is named for
// it.
enum class Part : std::uint8_t { kUnknown, kForward, kBackward, kSide };

struct Token {
  enum class Kind : std::uint8_t { kStep, kPhase, kModule, kCall, kLoopEnd, kTeardown };
  Kind kind = Kind::kCall;
  std::uint64_t key = 0;
  const Visit* visit = nullptr;  // of all but kCall
  std::uint64_t visit_number = 0;
  const Call* call = nullptr;  // of kCall
  NameId phase = 0, module = 0;
  PlaceId place = 0;     // where the user's program stood
  PlaceId line = 0;      // of kCall: the same for places that stand for each other
  bool reduces = false;  // kCall: reduces over ranks
  Part part = Part::kUnknown;
};

using Tokens = std::vector<Token>;

// Places that stand for each other: lines that healthy ranks were seen to call from at the same position
// (`if rank == root: send() else: receive()`).
class PlaceClasses {
 public:
  PlaceId find(PlaceId place) const;
  void join(PlaceId a, PlaceId b);

 private:
  std::unordered_map<PlaceId, PlaceId> parent_;
};

// Steps, phases and module visits of a rank, oldest first, from visit number `from`.  Phases in which nothing
// was called and no module was visited are left out: work on the host alone is nobody else's business.
Tokens visit_tokens(const RankView& rank, std::uint64_t from);

// The collectives of a member with numbers in [from, to].
Tokens call_tokens(const JobView& view, const Member& member, Seq from, Seq to, const PlaceClasses& places);

// Where history was last as it is at its end: `length` tokens before `end` equal its last ones.
struct Context {
  std::size_t end = 0, length = 0;  // length 0: the last token was never seen before
};
Context find_context(const Tokens& history);

// What history suggests to come after its end: finds the longest match of its last tokens earlier in it and
// continues from there, at most `limit` tokens.  Empty when the last token was never seen before.
Tokens predict(const Tokens& history, std::size_t limit);

// A module that is run forward in evaluation mode: not the same as the one of a training pass.
bool is_evaluated(const Token& token);

// Whether a phase name stands for something that all ranks have to do together besides training.
bool is_side_phase(std::string_view phase);      // save, load, eval, log, generate, ...
bool is_backward_phase(std::string_view phase);  // backward; recompute belongs to it
bool is_forward_phase(std::string_view phase);
Part part_of_phase(std::string_view phase);

}  // namespace dshang::job
