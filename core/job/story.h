// Tells how one sequence of tokens departs from another.
#pragma once

#include "core/job/divergence.h"

namespace dshang::job {

// `suspect`, `other`: tokens from the point where they part (the first ones differ, or one is empty).
// `history`: what the others did before that point, oldest first; it serves to predict how they would have
// gone on.
Story tell_story(const Tokens& suspect, const Tokens& other, const Tokens& history);

// Whether `tokens` goes on as its own `history` suggests.
bool follows_history(const Tokens& tokens, const Tokens& history);

}  // namespace dshang::job
