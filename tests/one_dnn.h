// For tests that train networks with 1x1 convolutions.
#pragma once

#include <cstdlib>

namespace abtrain::testing {

// On an EPYC with AVX2 but without AVX-512, LibTorch 2.11's oneDNN computes the
// weight gradients of some 1x1 convolutions wrongly, or crashes
// (jit_avx2_1x1_convolution_bwd_weights_t). Call this before the first
// convolution of the process; the processes that it starts inherit it. A value
// that the user has set stays.
inline void avoid_faulty_convolutions() {
  setenv("ONEDNN_MAX_CPU_ISA", "AVX", /*replace=*/0);
}

}  // namespace abtrain::testing
