#include <algorithm>

#include "core/job/edit.h"
#include "core/job/repetition.h"
#include "core/job/story.h"

namespace dshang::job {
namespace {

// A phase that was begun before, never at this line.
bool begins_at_new_line(const Token& token, const Tokens& history) {
  if (token.kind != Token::Kind::kPhase || !token.place) return false;
  bool begun = false;
  for (const Token& before : history) {
    if (before.key != token.key || !before.place) continue;
    if (before.place == token.place) return false;
    begun = true;
  }
  return begun;
}

}  // namespace

bool follows_history(const Tokens& tokens, const Tokens& history) {
  if (tokens.empty()) return false;
  Context context = find_context(history);
  if (context.length == 0 || history[context.end].key != tokens[0].key) return false;
  if (begins_at_new_line(tokens[0], history)) return false;
  // What repeats within a round (a run of equal calls) says nothing of how long it goes on: an earlier round
  // must.
  std::size_t period = history.size() - context.end;
  if (period > 1 && context.length >= period) return true;
  // So do a few tokens that once stood behind each other by chance, where the order changes from step to
  // step.
  if (context.length < kFewestAlike && context.length < context.end) return false;
  const Token& then = history[context.end];
  if (then.call && tokens[0].call && then.call->step != kNoStep && then.call->step != tokens[0].call->step)
    return true;
  auto begin = history.end() - static_cast<std::ptrdiff_t>(context.length);
  return std::any_of(begin, history.end(),
                     [](const Token& token) { return token.kind == Token::Kind::kStep; });
}

}  // namespace dshang::job
