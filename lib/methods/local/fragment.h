// A model's parameters cut in fragments that are synchronised one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "compress/bucket.h"

namespace abtrain::methods {

// Some layers' tensors of a flat buffer, one after another in a run of their
// own, in the buffer's order.
struct Fragment {
  std::vector<compress::Slot> slots;    // offsets are those in the run
  std::vector<compress::Range> ranges;  // of the buffer, in the run's order
  std::int64_t numel = 0;
};

// Cuts a model where the largest fragment is the smallest that it can be.
// Layers stay whole and neighbours stay together: so the sizes can be balanced,
// and a fragment is few runs of memory. `weights`: the positions of the layers'
// weights, ascending; a layer is a weight and the parameters up to the next
// one. Throws Error(Config) for more fragments than layers.
std::vector<Fragment> cut_fragments(
    const std::vector<compress::Slot>& slots,
    const std::vector<int>& weights,
    std::int64_t count);

}  // namespace abtrain::methods
