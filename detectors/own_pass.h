// A forward pass that only some ranks make, e.g. to print a prediction on rank 0.
#pragma once

#include "detectors/registry.h"

namespace dshang::detect {

struct OwnPass {
  job::PlaceId begun = 0;  // where those that are told of began it
  job::PlaceId usual = 0;  // where they begin the next one, and the others the one that they are in
};

// Those that are told of have ended one forward pass and begun another, while the others are in the forward
// or backward pass of their first; and that first one was begun at another line than theirs.
std::optional<OwnPass> own_pass(const JobView& view, const Divergence& d);

}  // namespace dshang::detect
