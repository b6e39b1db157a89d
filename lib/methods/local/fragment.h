// A model's parameters, cut into fragments that are synchronized one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "compress/bucket.h"

namespace abtrain::methods {

// The tensors of some neighboring layers.
using Fragment = compress::PackedSlots;

// Cuts a model so that the largest fragment is as small as possible. A fragment consists of whole,
// neighboring layers, so that it covers few ranges of memory. `weights`: the positions of the
// layers' weights, ascending; a layer is a weight and the parameters up to the next weight. Throws
// Error(Config) if there are more fragments than layers.
std::vector<Fragment> cut_fragments(
    const std::vector<compress::Slot>& slots, const std::vector<int>& weights, std::int64_t count);

}  // namespace abtrain::methods
