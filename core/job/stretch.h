// What a stretch of tokens is by itself: a step's boundary, plain calls, the reductions of a backward pass.
#pragma once

#include <cstddef>

#include "core/job/divergence.h"

namespace dshang::job {

// A step, a phase, or an end.
bool is_boundary(const Token& token);

bool begins_step(const Token& token);

// Of a forward or backward pass.
bool is_in_pass(const Token& token);

// Calls outside passes and modules.
bool is_plain(const Tokens& tokens);

// Length of the shortest stretch, from the start and within one phase or pass, in which both hold the same
// tokens in another order; 0 = none.
std::size_t permuted(const Tokens& a, const Tokens& b);

// Up to where the next step begins, or the loop ends.
Tokens rest_of_step(const Tokens& tokens);

// Length of the round that the tokens repeat from their start on; 0 = they do not repeat.
std::size_t period_of(const Tokens& tokens);

// From lines of the user's that belong to no pass: a backward pass has none.
bool reduces_from_lines(const Tokens& tokens);

// Nothing but reductions, and most of what was reduced since they were made last: gradients, by their size.
bool is_bulk_of_reductions(const Tokens& cut, const Tokens& history);

// Among the first `count`.
std::ptrdiff_t reductions(const Tokens& tokens, std::size_t count);

}  // namespace dshang::job
