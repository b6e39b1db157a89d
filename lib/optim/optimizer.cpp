#include "optim/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace abtrain::optim {
namespace {

// The 2-norm. Sums rows first: one long fp32 sum loses digits (relative error 1.6e-3 at 30 million
// numbers), a sum of sums does not.
at::Tensor norm_of(const at::Tensor& flat) {
  constexpr std::int64_t kRow = 4096;
  const std::int64_t rows = flat.numel() / kRow;
  const at::Tensor head = at::linalg_vector_norm(
      flat.narrow(0, 0, rows * kRow).view({rows, kRow}), 2, at::IntArrayRef{1});
  const at::Tensor tail =
      at::linalg_vector_norm(flat.narrow(0, rows * kRow, flat.numel() - rows * kRow));
  return at::linalg_vector_norm(at::cat({head, tail.view({1})}));
}

}  // namespace

Rates::Rates(c10::Device device)
    : dense_(at::zeros(
          {}, at::TensorOptions(device).dtype(device.is_cpu() ? at::kDouble : at::kFloat))),
      factors_(at::zeros_like(dense_)) {}

void Rates::set(double lr, double factor_scale) {
  dense_.fill_(lr);
  factors_.fill_(lr * factor_scale);
}

Clip clip(const at::Tensor& flat_gradients, double limit, bool fixed) {
  const at::NoGradGuard no_grad;
  if (flat_gradients.numel() == 0) {
    return {at::zeros({}, flat_gradients.options()), {}};
  }
  Clip result{norm_of(flat_gradients), {}};
  const bool known = flat_gradients.is_cpu() && !fixed;
  if (limit > 0 && (!known || result.norm.item<double>() > limit)) {
    result.divisor = result.norm.add(1e-6).div_(limit).clamp_min_(1);
  }
  return result;
}

}  // namespace abtrain::optim
