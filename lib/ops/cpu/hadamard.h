// The Walsh-Hadamard transform on the CPU, in place and unscaled: H H x = size x,
// with the rows of H in their natural (Sylvester) order. Sums are taken in one
// order, stage by stage, so every device gives the same bits.
#pragma once

namespace abtrain::ops {

// One block of 2^log_size elements.
void hadamard_block(float* x, int log_size);

}  // namespace abtrain::ops
