// What calls alone tell of forward and backward passes, where a phase or a function on the way names them.
#pragma once

#include "detectors/registry.h"

namespace dshang::detect {

// The rank that the story tells of was already in its backward pass while the other one still was in the
// forward pass, and that forward pass of it was shorter than each of its own before: it left out something
// that runs in both.
bool forward_was_shorter(const JobView& view, const Divergence& d);

// Of calls: the others begin the backward pass of what both have run forward, and the rank that the story
// tells of begins that forward pass again.
bool begins_forward_again(const JobView& view, const Divergence& d);

}  // namespace dshang::detect
