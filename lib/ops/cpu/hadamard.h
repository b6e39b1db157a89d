// The Walsh-Hadamard transform on the CPU, in place and unscaled: H H x = 2^log_size x, with the
// rows of H in natural (Sylvester) order. The stages are computed in a fixed order, so that CPU and
// GPU results are bit-identical.
#pragma once

namespace abtrain::ops {

// Transforms one block of 2^log_size elements.
void hadamard_block(float* x, int log_size);

}  // namespace abtrain::ops
