#include "core/job/story.h"

#include <algorithm>
#include <iterator>

#include "core/job/any_order.h"
#include "core/job/edit.h"
#include "core/job/repetition.h"
#include "core/job/stretch.h"

namespace dshang::job {
namespace {

constexpr std::size_t kLookAhead = 2048;

bool is_later(const Token& a, const Token& b) {
  return a.call && b.call && steps_differ(a, b) && a.call->step > b.call->step;
}

bool is_later(const Tokens& a, const Tokens& b) { return !a.empty() && !b.empty() && is_later(a[0], b[0]); }

bool is_loop(const Repetition& repetition) {
  return repetition && std::min(repetition.told, repetition.others) > 1;
}

// Of a backward pass, which has no line of the user's, and from a line of the user's.
bool parts_differ(const Token& a, const Token& b) {
  bool known = a.call->site && b.call->site;
  return known && a.part != b.part && (a.part == Part::kBackward || b.part == Part::kBackward);
}

bool same_purpose_other_arguments(const Token& a, const Token& b) {
  return a.kind == Token::Kind::kCall && b.kind == Token::Kind::kCall && a.call->op == b.call->op &&
         !parts_differ(a, b) && !steps_differ(a, b) && a.phase == b.phase && a.module == b.module &&
         (a.line == b.line || !a.line || !b.line);
}

// Tries one kind of story after the other; what stands earlier is likelier where several are possible.
class Teller {
 public:
  Teller(const Tokens& suspect, const Tokens& other, const Tokens& history)
      : suspect_(suspect), other_(other), history_(history) {
    // How the others went on, and would have gone on.
    ahead_ = other;
    Tokens past = history;
    past.insert(past.end(), other.begin(), other.end());
    Tokens predicted = predict(past, kLookAhead);
    ahead_.insert(ahead_.end(), predicted.begin(), predicted.end());
    deletion_ = find_edit(ahead_, other.size(), suspect, other, history, false, fewer_);
    insertion_ = find_edit(suspect, suspect.size(), ahead_, other, history, true, more_);
    // Whoever is in an earlier step has left nothing out of a later one.
    can_delete_ = deletion_.length < ahead_.size() && !is_later(other, suspect);
    can_insert_ = insertion_.length < suspect.size() && !is_later(suspect, other);
    if (!can_delete_ && !can_insert_) left_ = repetition_left(suspect, other, history);
  }

  void tell(Story& story) {
    if (permutation(story) || exchange(story) || gone_on(story) || other_rounds(story) || deletion(story) ||
        insertion(story) || parted_by_steps(story))
      return;
    story.repetition = left_;
    if (left_.passes.forward > 0) {
      story.forward_before = left_.passes.forward;
      story.backward_before = left_.passes.backward;
    }
    if (left_phase(story) || left_rounds(story)) return;
    // Never seen before, and what follows on it is not recorded yet.
    bool seen_before = index_of(history_, suspect_[0].key, 0) < history_.size();
    story.kind = seen_before && !is_boundary(suspect_[0]) ? Story::Kind::kUnknown : Story::Kind::kInsertion;
    if (story.kind == Story::Kind::kInsertion) story.added = {suspect_[0]};
  }

 private:
  bool permutation(Story& story) const {
    if (!other_.empty() && steps_differ(suspect_[0], other_[0])) return false;
    auto plain = [](const Edit& edit, bool possible) {
      return possible && edit.whole && edit.proof > edit.length;
    };
    if (plain(deletion_, can_delete_) || plain(insertion_, can_insert_)) return false;
    // A round that stands directly before was made once more: the others come to it again after what they do.
    if (can_insert_ && more_.round.size() > 1 && insertion_.proof > 0) return false;
    std::size_t n = permuted(suspect_, other_);
    // Behind the stretch they have to agree again.
    bool more_recorded = n < std::min(suspect_.size(), other_.size());
    if (n <= 1 || (more_recorded && agreement(suspect_, n, other_, n) == 0)) return false;
    story.kind = Story::Kind::kPermutation;
    story.added = slice(suspect_, n);
    story.left_out = slice(other_, n);
    return true;
  }

  bool exchange(Story& story) const {
    if (other_.empty()) return false;
    if (!same_purpose_other_arguments(suspect_[0], other_[0])) return false;
    std::size_t in_place = agreement(suspect_, 1, other_, 1),
                recorded = std::min(suspect_.size(), other_.size());
    auto is_new = [&](const Token& token) { return index_of(history_, token.key, 0) == history_.size(); };
    // A call that nobody made before, and what stands behind it is the same in place.
    bool odd_one = in_place > 0 && in_place + 1 == recorded && (is_new(suspect_[0]) || is_new(other_[0]));
    // It rather left the round, unless it is still in its phase.
    bool in_pass = suspect_[0].part != Part::kUnknown && suspect_[0].part == other_[0].part;
    bool new_in_phase = (suspect_[0].phase || in_pass) && is_new(suspect_[0]);
    if (left_.round.size() > 1 && !new_in_phase && !odd_one) return false;
    if (can_delete_ && !leaves_module(deletion_) && !odd_one) return false;
    // The calls behind are others in place, and the same behind what the suspects did more.
    if (can_insert_ && in_place + 1 < recorded && in_place < insertion_.proof) return false;
    story.kind = Story::Kind::kExchange;
    return true;
  }

  // Both sides call in one module, and what is cut out reaches beyond it: then that was not left out, since
  // the visits do not part.
  bool leaves_module(const Edit& edit) const {
    NameId module = suspect_[0].module;
    return module && other_[0].module == module &&
           std::any_of(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(edit.length),
                       [&](const Token& token) { return token.module != module; });
  }

  // One more of the rounds that the others leave.
  bool gone_on(Story& story) const {
    if (can_insert_) return false;
    Repetition gone_on = repetition_gone_on(suspect_, other_, history_);
    if (!gone_on) return false;
    // Training steps are the job itself: what the others do between two of them was left out.
    if (can_delete_ && holds_step(gone_on.round) && is_plain(cut())) return false;
    story.kind = Story::Kind::kInsertion;
    story.added = slice(suspect_, gone_on.round.size());
    story.repetition = std::move(gone_on);
    return true;
  }

  // Some rounds of a side phase only, or another number of passes in a step.
  bool other_rounds(Story& story) const {
    Repetition left = repetition_begun_again(suspect_, other_, history_);
    if (!left) left = repetition_of_passes(suspect_, other_, history_);
    if (!left) left = repetition_in_any_order(suspect_, other_, history_);
    if (!left) return false;
    bool more = left.told > left.others;
    story.kind = more ? Story::Kind::kInsertion : Story::Kind::kDeletion;
    (more ? story.added : story.left_out) = slice(more ? suspect_ : other_, left.round.size());
    story.repetition = std::move(left);
    return true;
  }

  bool deletion(Story& story) const {
    if (!can_delete_) return false;
    Tokens cut = this->cut();
    if (makes_step_of(cut)) return false;
    std::ptrdiff_t in_round = reductions(ahead_, period_of(ahead_));
    bool all_reductions =
        (in_round > 0 && reductions(cut, cut.size()) >= in_round) || is_backward_of_last(cut, history_) ||
        ((deletion_.proof > 1 || deletion_.to_the_end) && is_bulk_of_reductions(cut, history_));
    story.leaves_out_all_reductions = all_reductions && !reduces_from_lines(cut);
    if (can_insert_ && !better_than_insertion(story.leaves_out_all_reductions)) return false;
    if (story.leaves_out_all_reductions && suspect_.size() == 1 && begins_once_more()) return false;
    story.kind = Story::Kind::kDeletion;
    story.repetition = fewer_;
    story.leaves_out_another_backward = is_another_backward(cut, history_);
    story.others_went_on = deletion_.length < other_.size();
    story.came_round = came_round(cut);
    story.left_out = std::move(cut);
    return true;
  }

  // What the suspects left out.  Where the order within a pass is another each time, what is predicted of it
  // says nothing: only what stands before the pass is missing.
  Tokens cut() const {
    std::size_t n = 0;
    while (n < deletion_.length && !is_in_pass(ahead_[n])) ++n;
    bool order_only =
        n > 0 && n >= other_.size() && is_in_pass(suspect_[0]) &&
        std::all_of(ahead_.begin() + static_cast<std::ptrdiff_t>(n),
                    ahead_.begin() + static_cast<std::ptrdiff_t>(deletion_.length), [&](const Token& token) {
                      return token.part == suspect_[0].part && token.phase == suspect_[0].phase;
                    });
    return slice(ahead_, order_only ? n : deletion_.length);
  }

  // Behind the gap they agree with the others, and make again what stands directly before it, or are in a
  // later step.
  bool came_round(const Tokens& cut) const {
    std::size_t agreed = agreement(suspect_, 0, ahead_, deletion_.length);
    if (agreed < kFewestAlike || history_.empty()) return false;
    for (std::size_t i = 0; i < agreed && suspect_[i].key != cut[0].key; ++i) {
      if (suspect_[i].key == history_.back().key || is_later(suspect_[i], cut[0])) return true;
    }
    return false;
  }

  bool better_than_insertion(bool leaves_out_all_reductions) const {
    if (is_loop(more_) && !is_loop(fewer_)) return false;
    if (insertion_.length == 1 && begins_once_more()) return false;
    // A forward pass repeated and a backward pass left out read alike in the calls; the second is what
    // happens.
    if (leaves_out_all_reductions && reductions(suspect_, insertion_.length) == 0) return true;
    // So do what stands behind the backward pass, made once more, and what it is without that pass.
    bool known_call = index_of(history_, suspect_[0].key, 0) < history_.size();
    if (leaves_out_all_reductions && known_call && deletion_.proof >= insertion_.proof) return true;
    // A loop that was left or gone on with is likelier than a call between its rounds; one round alone makes
    // no loop.
    if (is_loop(fewer_)) return true;
    // What they would have done more is what the others do behind the gap: they left out something twice.
    if (deletion_.proof > deletion_.length && insertion_.length > deletion_.length + deletion_.proof)
      return true;
    if (deletion_.to_the_end != insertion_.to_the_end) return deletion_.to_the_end;
    return deletion_.length <= insertion_.length;
  }

  // With one more of the call directly before.  Where nothing is recorded behind it, it may as well begin the
  // next pass.
  bool begins_once_more() const {
    return suspect_[0].call && suspect_[0].part == Part::kUnknown && !suspect_[0].place &&
           !history_.empty() && suspect_[0].key == history_.back().key;
  }

  bool insertion(Story& story) const {
    // Whoever begins the backward pass before the others has left something out.
    bool left_forward = !other_.empty() && is_boundary(suspect_[0]) && suspect_[0].part == Part::kBackward &&
                        other_[0].kind == Token::Kind::kModule && other_[0].part == Part::kForward;
    if (!can_insert_ || left_forward) return false;
    story.kind = Story::Kind::kInsertion;
    story.added = slice(suspect_, insertion_.length);
    story.repetition = more_;
    story.resumed = true;
    if (once_more() && can_delete_ && deletion_.to_the_end == insertion_.to_the_end)
      story.or_left_out = cut();
    return true;
  }

  // Nothing but the call directly before.
  bool once_more() const {
    return insertion_.length == 1 && suspect_[0].call && !history_.empty() &&
           suspect_[0].key == history_.back().key;
  }

  // They make the step that they would have left out; or they save or evaluate, and nothing says that the
  // loop is over: a call of their own is likelier.
  bool makes_step_of(const Tokens& cut) const {
    auto first = std::find_if(cut.begin(), cut.end(), begins_step);
    if (first == cut.end()) return false;
    bool only_predicted = cut.size() >= other_.size();
    if (only_predicted && suspect_[0].kind == Token::Kind::kPhase && suspect_[0].part == Part::kSide)
      return true;
    bool same_step = !is_end(suspect_[0]) && !begins_step(suspect_[0]) &&
                     suspect_[0].visit->step != kNoStep && !other_.empty() &&
                     suspect_[0].visit->step == other_[0].visit->step;
    if (first != cut.begin() && same_step) return true;
    if (first - cut.begin() >= static_cast<std::ptrdiff_t>(other_.size())) return false;
    return std::any_of(suspect_.begin(), suspect_.end(), [&](const Token& token) {
      return begins_step(token) && token.visit->step == first->visit->step;
    });
  }

  // One side is in a later step: it left out what the others make of the earlier one, or they made it more.
  bool parted_by_steps(Story& story) const {
    if (other_.empty() || is_end(suspect_[0]) || is_end(other_[0])) return false;
    const Token &mine = suspect_[0], &theirs = other_[0];
    bool calls = mine.call && theirs.call && steps_differ(mine, theirs);
    bool mine_later = calls ? mine.call->step > theirs.call->step : begins_step(mine) && !begins_step(theirs);
    bool theirs_later = calls ? !mine_later : begins_step(theirs) && !begins_step(mine);
    if (!mine_later && !theirs_later) return false;
    if (mine_later) {
      story.kind = Story::Kind::kDeletion;
      story.left_out = rest_of_step(other_);
      return true;
    }
    story.kind = Story::Kind::kInsertion;
    story.added = rest_of_step(suspect_);
    story.resumed = story.added.size() < suspect_.size() && !is_end(suspect_[story.added.size()]);
    return true;
  }

  // It left the phase in which the others go on with modules.
  bool left_phase(Story& story) const {
    if (!is_boundary(suspect_[0]) || other_.empty() || other_[0].kind != Token::Kind::kModule) return false;
    story.kind = Story::Kind::kDeletion;
    for (const Token& token : other_) {
      if (is_boundary(token)) break;
      story.left_out.push_back(token);
    }
    if (!left_) story.repetition = repetition_of_edit(story.left_out, other_, history_, false);
    return true;
  }

  bool left_rounds(Story& story) const {
    if (!left_) return false;
    bool goes_on = left_.told > left_.others;
    story.kind = goes_on ? Story::Kind::kInsertion : Story::Kind::kDeletion;
    (goes_on ? story.added : story.left_out) = slice(goes_on ? suspect_ : other_, left_.round.size());
    return true;
  }

  const Tokens &suspect_, &other_, &history_;
  Tokens ahead_;  // of the others
  Edit deletion_, insertion_;
  Repetition fewer_, more_, left_;  // of the deletion, of the insertion, of neither
  bool can_delete_ = false, can_insert_ = false;
};

// Steps and phases alone.
Tokens boundaries(const Tokens& tokens) {
  Tokens kept;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(kept), is_boundary);
  return kept;
}

// Both sides are between modules, and what stands in the phases is another each time (an order that is drawn
// anew): the phases may still tell.
void tell_phases(const Tokens& suspect, const Tokens& other, const Tokens& history, Story& story) {
  bool told =
      story.kind == Story::Kind::kDeletion || story.kind == Story::Kind::kPermutation || story.repetition;
  if (told || other.empty() || !is_boundary(suspect[0]) || !is_boundary(other[0])) return;
  Story of_phases = story;
  of_phases.added.clear();
  Tokens mine = boundaries(suspect), theirs = boundaries(other), past = boundaries(history);
  Teller(mine, theirs, past).tell(of_phases);
  if (of_phases.repetition) story = of_phases;
}

// Whether what history ends with was once followed by such a token.
bool stood_behind(const Tokens& history, const Token& token) {
  for (std::size_t i = 1; i < history.size(); ++i) {
    if (history[i].key == token.key && history[i - 1].key == history.back().key) return true;
  }
  return false;
}

}  // namespace

Story tell_story(const Tokens& suspect, const Tokens& other, const Tokens& history) {
  Story story;
  if (!other.empty()) story.expected = {other[0]};
  if (suspect.empty()) {
    story.kind = other.empty() ? Story::Kind::kNone : Story::Kind::kSilent;
    return story;
  }
  story.next = {suspect[0]};
  story.from_visits = suspect[0].kind != Token::Kind::kCall;
  Passes passes = passes_at_end(history);
  story.forward_before = passes.forward;
  story.backward_before = passes.backward;
  Teller(suspect, other, history).tell(story);
  const Tokens& edited = story.kind == Story::Kind::kDeletion ? story.left_out : story.added;
  auto was_made = [&](const Token& token) { return index_of(history, token.key, 0) < history.size(); };
  bool elsewhere = story.kind == Story::Kind::kInsertion && history.size() >= kFewestAlike;
  story.is_new = !edited.empty() && (std::none_of(edited.begin(), edited.end(), was_made) ||
                                     (elsewhere && !stood_behind(history, edited[0])));
  if (story.from_visits) tell_phases(suspect, other, history, story);
  return story;
}

}  // namespace dshang::job
