// Edits: a stretch that one sequence of tokens has more than another.
#pragma once

#include "core/job/divergence.h"

namespace dshang::job {

constexpr std::size_t kFewestAlike =
    4;  // tokens in a row, below which that two stretches are alike is chance

// The first n of them, or all.
Tokens slice(const Tokens& tokens, std::size_t n);

// Of the first with that key from `from` on; tokens.size() = none.
std::size_t index_of(const Tokens& tokens, std::uint64_t key, std::size_t from);

// How far the two agree from the given positions on.
std::size_t agreement(const Tokens& a, std::size_t at_a, const Tokens& b, std::size_t at_b);

// Of a loop, or of the process.
bool is_end(const Token& token);

// What is done in different steps is not meant for each other, whatever its arguments.
bool steps_differ(const Token& a, const Token& b);

// One stretch that `in` has more: so long that what follows on it agrees with `with`.
struct Edit {
  std::size_t length = 0;   // in.size() = there is none
  std::size_t proof = 0;    // tokens that agree behind it
  bool to_the_end = false;  // as far as anything is known
  bool whole = false;       // all of `with`
};

// The shortest edit, if what it adds repeats what stands before it, which is `history`; else the best one.
// Of `in`, the first `recorded` are, what follows is predicted.  `other`: as for repetition_of_edit.
Edit find_edit(const Tokens& in, std::size_t recorded, const Tokens& with, const Tokens& other,
               const Tokens& history, bool told_made_more, Repetition& repetition);

}  // namespace dshang::job
