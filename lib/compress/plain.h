// Averages without compression: in fp32, or in 16 bits on the wire. The baseline of the compressing
// schemes.
#pragma once

#include "compress/reducer.h"

namespace abtrain::compress {

// Averages a contiguous 1-D fp32 buffer in place. Elements are sent as type `wire`. The mean is
// bit-identical on all members. A group of one sends nothing, so nothing is rounded.
void average(
    const at::Tensor& flat, comm::Communicator& group, comm::Purpose purpose, at::ScalarType wire);

}  // namespace abtrain::compress
