// The same stretch, made another number of times: decode cycles, chunks, micro-batches, steps.
#pragma once

#include "core/job/divergence.h"

namespace dshang::job {

// How many whole rounds of `round` stand at the end of `tokens`.
std::size_t rounds_at_end(const Tokens& tokens, const Tokens& round);

// Of an edit: `extra` is what one side made more (a deletion: the others, who go on with `other`; an
// insertion: those that are told of), right behind `history`.  Empty where the extra is no repetition of what
// stands directly before it, or where it may as well be a fixed part of something larger (equal layers behind
// each other).
Repetition repetition_of_edit(const Tokens& extra, const Tokens& other, const Tokens& history,
                              bool told_made_more);

// One side goes on with the round that both made before, the other with something else, and nothing recorded
// says what comes behind that.  Only for rounds that cannot be whole training steps: a rank that leaves those
// has left the loop, or makes a call of its own.
Repetition repetition_left(const Tokens& suspect, const Tokens& other, const Tokens& history);

// The others begin again what both made of a side phase (generation, evaluation); the suspects leave the
// phase.
Repetition repetition_begun_again(const Tokens& suspect, const Tokens& other, const Tokens& history);

// Behind a backward pass one side begins another forward pass in the same step, the other goes on elsewhere;
// what a pass consists of may be another each time.
Repetition repetition_of_passes(const Tokens& suspect, const Tokens& other, const Tokens& history);

// The suspects go on with the round that the others leave as it was always left before.
Repetition repetition_gone_on(const Tokens& suspect, const Tokens& other, const Tokens& history);

// Whether a round is a whole training step, where none are announced: a backward pass, and a reduction from a
// line of the user's that belongs to no pass.
bool holds_step(const Tokens& round);

// Whether `left_out` begins with the whole backward pass of the weights that were gathered last, seen by
// shape: it gathers all of them again, and reduces.
bool is_backward_of_last(const Tokens& left_out, const Tokens& history);

// What was made of the step's forward and backward pass before `history` ends, where phases or functions name
// them.
Passes passes_at_end(const Tokens& history);

// Whether `left_out` is the backward pass of modules whose backward pass was made once already in the step in
// which `history` ends: there were two forward passes, and the loss depends on one.
bool is_another_backward(const Tokens& left_out, const Tokens& history);

}  // namespace dshang::job
