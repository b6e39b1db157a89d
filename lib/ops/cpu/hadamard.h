// The Walsh-Hadamard transform on the CPU, in place and unscaled: H H x =
// 2^log_size x, with the rows of H in natural (Sylvester) order. The stages are
// computed in a fixed order, so every device gives the same bits.
#pragma once

namespace abtrain::ops {

// One block of 2^log_size elements.
void hadamard_block(float* x, int log_size);

}  // namespace abtrain::ops
