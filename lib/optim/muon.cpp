// Muon (Jordan et al. 2024): orthogonalizes the momentum of each matrix before taking it as a step;
// all other parameters take AdamW's steps. The formulas are in docs/methods/muon.md.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "device/tensor_text.h"
#include "optim/adamw.h"
#include "optim/newton_schulz.h"
#include "optim/optimizer_kind.h"

namespace abtrain::optim {
namespace {

// A matrix, or a convolution as a matrix: outputs x (inputs x kernel). A parameter may consist of
// several such matrices, stacked vertically.
struct Shape {
  std::int64_t rows, columns;
  bool transposed;  // columns are contiguous in memory, not rows
  bool is_block;    // one of several
  auto operator<=>(const Shape&) const = default;
};

Shape shape_of(const ParameterRef& parameter) {
  const at::Tensor& tensor = *parameter.tensor;
  const std::int64_t rows = tensor.size(0);
  const std::int64_t columns = tensor.numel() / rows;
  const bool by_rows = rows == 1 || tensor.stride(0) == columns;
  ABT_CHECK(
      by_rows || (tensor.stride(0) == 1 && parameter.matrices == 1), DamagedData,
      "{}: expected a matrix whose rows or columns are contiguous, got strides "
      "{}",
      parameter.name, tensor.strides());
  return {rows / parameter.matrices, columns, !by_rows, parameter.matrices > 1};
}

// The matrix or its transpose, whichever is row-major in memory. A channels-last convolution has
// its columns in another order, the same in all rows. Orthogonalization commutes with a permutation
// of columns and with a transposition, so neither matters.
at::Tensor stored(const at::Tensor& flat, const Shape& shape) {
  return shape.transposed ? flat.view({shape.columns, shape.rows})
                          : flat.view({shape.rows, shape.columns});
}

// On the CPU, the matrices stacked in a parameter are computed together, which is faster, if each
// has at most this many elements.
constexpr std::int64_t kSmall = 1 << 14;

class Muon : public Optimizer {
 public:
  // Moments: for orthogonalized matrices the momentum and an unused buffer, for all other
  // parameters AdamW's two.
  explicit Muon(const OptimizerOptions& options)
      : Optimizer(options, {MomentKind::Gradients, MomentKind::Other}),
        newton_schulz_(options.ns_steps) {}

  void compute_in(at::ScalarType precision) override {
    precision_ = precision;
  }

  void step(ParameterBlock& block, const Rates& rates, const at::Tensor& divisor) override {
    const at::NoGradGuard no_grad;
    for (const Slice& slice : block.slices()) {
      const at::Tensor& rate = rates.of(slice);
      if (slice.is_matrix && (slice.is_factor || options_.matrices == MuonMatrices::All)) {
        step_matrices(slice, block.parameters(), rate, divisor);
      } else {
        adamw_step(slice, rate * (options_.other_lr / options_.lr), options_, divisor);
      }
    }
  }

 private:
  // Turns each matrix's gradient into its step, then applies the step to the values.
  void step_matrices(
      const Slice& slice, const std::vector<ParameterRef>& parameters, const at::Tensor& rate,
      const at::Tensor& divisor) {
    at::_foreach_add_(slice.steps, 1);
    if (divisor.defined()) {
      at::_foreach_div_(slice.gradients, divisor);
    }
    at::_foreach_lerp_(slice.moments[0], slice.gradients, 1 - options_.momentum);
    if (options_.nesterov.value_or(true)) {
      at::_foreach_lerp_(slice.gradients, slice.moments[0], options_.momentum);
    } else {
      at::_foreach_copy_(slice.gradients, slice.moments[0]);
    }
    orthogonalize(slice, parameters);
    if (const double decay = slice.decay(options_); decay > 0) {
      at::_foreach_mul_(slice.values, rate.mul(-decay).add_(1));
    }
    at::_foreach_mul_(slice.gradients, rate.neg());
    at::_foreach_add_(slice.values, slice.gradients);
  }

  void orthogonalize(const Slice& slice, const std::vector<ParameterRef>& parameters) {
    std::map<Shape, std::vector<at::Tensor>> by_shape;
    for (std::size_t i = 0; i < slice.gradients.size(); ++i) {
      const ParameterRef& parameter = parameters[slice.indices[i]];
      const Shape shape = shape_of(parameter);
      for (const at::Tensor& matrix : slice.gradients[i].chunk(parameter.matrices)) {
        by_shape[shape].push_back(stored(matrix, shape));
      }
    }
    for (const auto& [shape, matrices] : by_shape) {
      if (shape.is_block && shape.rows * shape.columns <= kSmall && matrices.front().is_cpu()) {
        newton_schulz_.together(matrices, scale_of(shape), at::kFloat);
      } else {
        newton_schulz_.apply(matrices, scale_of(shape), precision_);
      }
    }
  }

  double scale_of(const Shape& shape) const {
    const auto rows = static_cast<double>(shape.rows);
    const auto columns = static_cast<double>(shape.columns);
    return options_.scale == MuonScale::Spectral ? std::sqrt(std::max(1.0, rows / columns))
                                                 : 0.2 * std::sqrt(std::max(rows, columns));
  }

  at::ScalarType precision_ = at::kFloat;
  NewtonSchulz newton_schulz_;
};

}  // namespace

const OptimizerKind kMuon{.name = "muon", .make = make<Muon>, .check = check_nesterov};

}  // namespace abtrain::optim
