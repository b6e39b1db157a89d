// Computes the mean cross-entropy of rows of logits together with its gradient. It reads the logits
// twice, writes the gradient once in their dtype, and sums in fp32.
//
//   loss = mean, over the rows with a label that counts, of
//            log sum_j e^x_j - (1 - s) x_label - s mean_j x_j    (s: smoothing)
//   gradient = weight d loss / d x; 0 in rows with a label that does not count
//
// If no row has a label that counts, the loss is 0. A label that is neither a class nor `ignored`
// makes the loss NaN. Gradients are bit-identical on CPU and GPU, except for the bits of a NaN. On
// CUDA, kernels are queued on this thread's current stream, and nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace abtrain::ops {

struct EntropyOptions {
  double smoothing = 0;                 // of the labels, 0 .. 1
  double weight = 1;                    // of the gradient
  std::optional<std::int64_t> ignored;  // the label of rows that do not count
};

struct LossAndGradient {
  at::Tensor loss;      // fp32 scalar
  at::Tensor gradient;  // shape and dtype of the logits
};

// logits: rows x classes, contiguous fp32 or bf16; labels: one int64 per row.
LossAndGradient cross_entropy(
    const at::Tensor& logits, const at::Tensor& labels, const EntropyOptions& options);

}  // namespace abtrain::ops
