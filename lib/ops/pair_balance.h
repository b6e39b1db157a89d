// The decisions of PairBalance (Cooper et al., "Coordinating Distributed
// Example Orders for Provably Accelerated Training", arXiv 2302.00845,
// algorithm 2).
//
// Of each worker j in turn, with the difference D_j of its gradients at two
// neighbouring places of its order:  sign_j = <S, D_j> <= 0 ? +1 : -1;
// S += sign_j D_j. S goes on from worker to worker: that is the coordination.
//
// The same bits on CPU and GPU; on CUDA queued on this thread's current stream,
// nothing is read back. A product that is NaN gives -1.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::ops {

// sum: fp32, 1-D, S; rows: fp32, contiguous, workers x numel, D; signs: int8,
// one a worker.
void pair_balance(
    const at::Tensor& sum,
    const at::Tensor& rows,
    const at::Tensor& signs);

}  // namespace abtrain::ops
