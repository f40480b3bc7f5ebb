// rank-conditional-call: a whole forward pass that the others do not make.  Its gathers meet those of the
// others' next pass, so that the ranks part only where the passes do.
#include "detectors/own_pass.h"

#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

bool is_forward(const JobView& view, const job::Visit& visit) {
  return job::is_forward_phase(view.names().text(visit.phase));
}

job::PlaceId user_place(const JobView& view, const job::Visit& visit) {
  return visit.site ? view.names().site(visit.site).user_place : 0;
}

// The beginning of the newest forward pass before visit `before` on this thread.
const job::Visit* pass_before(const JobView& view, const job::RankView& rank, std::uint64_t before,
                              std::uint32_t thread) {
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = std::min(before, visits.end()); n-- > visits.first();) {
    const job::Visit& visit = visits.at(n);
    if (!visit.torn && visit.thread == thread && visit.kind == flight::VisitKind::kPhasePush &&
        is_forward(view, visit))
      return &visit;
  }
  return nullptr;
}

bool in_first_pass(const JobView& view, const Token& token) {
  bool module = token.kind == Token::Kind::kModule;
  const std::string& phase = view.names().text(token.phase);
  return (module && job::is_forward_phase(phase)) || job::is_backward_phase(phase);
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  std::optional<OwnPass> pass = own_pass(view, d);
  if (!pass) return std::nullopt;
  const std::string at = view.names().place_text(pass->begun), usual = view.names().place_text(pass->usual);
  Explanation e;
  e.class_certainty = Certainty::kProven;
  e.summary = told_text(d) + " made a forward pass at " + at + " that the other ranks do not make" +
              step_text(d) + "; " + waiting_at(d);
  e.evidence.push_back("its calls met those of the pass that the others began at " + usual +
                       "; now they are in that pass, and " + told_text(d) + " begins it");
  e.fix = {
      "Make the pass on every rank (a prediction to print, a sample to generate, a validation), and keep "
      "only "
      "the printing or writing behind `if rank == 0:`.",
      "Under ZeRO-3 each pass gathers every layer from all ranks; where one rank needs the model for itself, "
      "use a copy of it that is not partitioned."};
  return e;
}

}  // namespace

std::optional<OwnPass> own_pass(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  if (story.next.empty() || story.expected.empty() || !story.from_visits) return std::nullopt;
  const Token &next = story.next[0], &expected = story.expected[0];
  bool begins =
      next.kind == Token::Kind::kPhase && next.visit && job::is_forward_phase(view.names().text(next.phase));
  const job::RankView *told = view.by_rank(d.told_of), *other = view.by_rank(d.witness);
  if (!begins || !told || !other || !expected.visit || !in_first_pass(view, expected)) return std::nullopt;
  const job::Visit* first = pass_before(view, *told, next.visit_number, next.visit->thread);
  // The backward pass is another thread's; what began the pass is not.
  const job::Visit* theirs = nullptr;
  const auto& visits = other->records().visits;
  for (std::uint64_t n = std::min(expected.visit_number, visits.end()); n-- > visits.first() && !theirs;) {
    const job::Visit& visit = visits.at(n);
    if (!visit.torn && visit.kind == flight::VisitKind::kPhasePush && is_forward(view, visit))
      theirs = &visit;
  }
  if (!first || !theirs) return std::nullopt;
  OwnPass pass{user_place(view, *first), user_place(view, *theirs)};
  bool is_own =
      pass.begun && pass.usual && pass.begun != pass.usual && user_place(view, *next.visit) == pass.usual;
  return is_own ? std::make_optional(pass) : std::nullopt;
}

DSHANG_EXPLAINER(0, "rank-conditional-call", explain);

}  // namespace dshang::detect
