// A collection that is walked through (gradients, metrics, a dictionary): the same operation from the same
// line, item after item.
#pragma once

#include "detectors/registry.h"

namespace dshang::detect {

// What the two sides make at the visible call are two items of one collection, of which neither has been made
// yet in this walk: it is another order, and no item of another shape.  Or one of them is what is always made
// in another phase.
bool swaps_items(const JobView& view, const Divergence& d);

}  // namespace dshang::detect
