// Averages without compression: in fp32, or in 16 bits on the wire. The
// compressing schemes are measured against this.
#pragma once

#include "compress/reducer.h"

namespace abtrain::compress {

// Averages a contiguous 1-D fp32 buffer in place, with elements of type `wire`
// on the wire. The mean has the same bits on every member. A group of one sends
// nothing, so nothing is rounded.
void average(
    const at::Tensor& flat, comm::Communicator& group, comm::Purpose purpose, at::ScalarType wire);

}  // namespace abtrain::compress
