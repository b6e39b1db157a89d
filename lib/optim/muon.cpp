// Muon (Jordan et al. 2024): the momentum of each matrix is orthogonalized
// before it becomes a step; all other parameters take AdamW's steps. With a
// fraction below 1, a step takes only the largest rows or columns of the
// momentum (Dion2, arXiv:2512.16928). The formulas stand in
// docs/methods/muon.md.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/mapped.h"
#include "device/tensor_text.h"
#include "optim/adamw.h"
#include "optim/newton_schulz.h"
#include "optim/optimizer_kind.h"
#include "optim/spectral_norm.h"

namespace abtrain::optim {
namespace {

// A matrix, or a convolution as its matrix: outputs x (inputs x kernel).
struct Shape {
  std::int64_t rows, columns;
  bool transposed;  // in memory columns are contiguous, not rows
  auto operator<=>(const Shape&) const = default;
};

Shape shape_of(const ParameterRef& parameter) {
  const at::Tensor& tensor = *parameter.tensor;
  const std::int64_t rows = tensor.size(0);
  const std::int64_t columns = tensor.numel() / rows;
  const bool by_rows = rows == 1 || tensor.stride(0) == columns;
  ABT_CHECK(
      by_rows || tensor.stride(0) == 1, DamagedData,
      "{}: expected a matrix whose rows or columns are contiguous, got strides "
      "{}",
      parameter.name, tensor.strides());
  return {rows, columns, !by_rows};
}

// The matrix or its transpose, as it lies in memory: row-major. A channels-last
// convolution has its columns in another order, which is the same in all rows;
// neither this nor a transposition changes what is computed here.
at::Tensor stored(const at::Tensor& flat, const Shape& shape) {
  return shape.transposed ? flat.view({shape.columns, shape.rows})
                          : flat.view({shape.rows, shape.columns});
}

class Muon : public Optimizer {
 public:
  // The momentum and nothing, or AdamW's two; for `spectron` the second one of
  // a factor holds the vectors of its two power iterations.
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
  // Each gradient becomes the step of its matrix, then each value takes it.
  void step_matrices(
      const Slice& slice, const std::vector<ParameterRef>& parameters, const at::Tensor& rate,
      const at::Tensor& divisor) {
    at::_foreach_add_(slice.steps, 1);
    if (divisor.defined()) {
      at::_foreach_div_(slice.gradients, divisor);
    }
    if (options_.fraction < 1) {
      at::_foreach_add_(slice.moments[0], slice.gradients);
    } else {
      at::_foreach_lerp_(slice.moments[0], slice.gradients, 1 - options_.momentum);
      if (options_.nesterov.value_or(true)) {
        at::_foreach_lerp_(slice.gradients, slice.moments[0], options_.momentum);
      } else {
        at::_foreach_copy_(slice.gradients, slice.moments[0]);
      }
    }
    orthogonalize(slice, parameters);
    if (options_.scale == MuonScale::Normalized) {
      normalize(slice, parameters);
    } else if ((slice.decays || options_.decay_all) && options_.weight_decay > 0) {
      at::_foreach_mul_(slice.values, rate.mul(-options_.weight_decay).add_(1));
    }
    at::_foreach_mul_(slice.gradients, rate.neg());
    at::_foreach_add_(slice.values, slice.gradients);
  }

  void orthogonalize(const Slice& slice, const std::vector<ParameterRef>& parameters) {
    const bool bounded = slice.is_factor && options_.factor_step == FactorStep::Spectron;
    std::map<Shape, std::vector<std::size_t>> by_shape;
    for (std::size_t i = 0; i < slice.gradients.size(); ++i) {
      by_shape[shape_of(parameters[slice.indices[i]])].push_back(i);
    }
    for (const auto& [shape, places] : by_shape) {
      const auto matrices = [&](const std::vector<at::Tensor>& flat) {
        return mapped(places, [&](std::size_t i) { return stored(flat[i], shape); });
      };
      const double scale = bounded ? 1 : scale_of(shape);
      if (options_.fraction < 1) {
        orthogonalize_largest(matrices(slice.moments[0]), matrices(slice.gradients), scale);
      } else {
        newton_schulz_.apply(matrices(slice.gradients), scale, precision_);
      }
    }
    for (std::size_t i = 0; bounded && i < slice.gradients.size(); ++i) {
      slice.gradients[i].div_(spectron_divisor(slice, i, parameters[slice.indices[i]]));
    }
  }

  // Orthogonalizes the rows, or the columns where there are fewer of them, of
  // the largest sums of magnitudes in each momentum, where they are then
  // multiplied by options_.momentum. What a step leaves out stays there for the
  // next ones.
  void orthogonalize_largest(
      const std::vector<at::Tensor>& momenta, const std::vector<at::Tensor>& steps, double scale) {
    const std::int64_t dim = momenta.front().size(0) <= momenta.front().size(1) ? 0 : 1;
    const auto taken = static_cast<std::int64_t>(
        std::ceil(options_.fraction * static_cast<double>(momenta.front().size(dim))));
    std::vector<at::Tensor> places, parts;
    for (const at::Tensor& momentum : momenta) {
      const at::Tensor sums = at::linalg_vector_norm(momentum, 1, at::IntArrayRef{1 - dim});
      places.push_back(std::get<1>(sums.topk(taken)));
      parts.push_back(momentum.index_select(dim, places.back()));
    }
    std::vector<at::Tensor> kept = at::_foreach_mul(parts, options_.momentum);
    newton_schulz_.apply(parts, scale, precision_);
    for (std::size_t i = 0; i < momenta.size(); ++i) {
      momenta[i].index_copy_(dim, places[i], kept[i]);
      steps[i].zero_().index_copy_(dim, places[i], parts[i]);
    }
  }

  double scale_of(const Shape& shape) const {
    const auto rows = static_cast<double>(shape.rows);
    const auto columns = static_cast<double>(shape.columns);
    switch (options_.scale) {
      case MuonScale::MatchRms:
        return 0.2 * std::sqrt(std::max(rows, columns));
      case MuonScale::Spectral:
        return std::sqrt(std::max(1.0, rows / columns));
      case MuonScale::Normalized:
        break;
    }
    return 1;
  }

  // |A|_2 + |B|_2 + 1 of parameter i, which is A or B.
  static at::Tensor spectron_divisor(const Slice& slice, std::size_t i, const ParameterRef& own) {
    ABT_ASSERT(own.partner != nullptr, "{} has no other factor", own.name);
    const Shape shape = shape_of(own);
    const Shape other = shape_of({own.name, own.partner});
    // Both vectors have as many elements as the rank at most: they lie apart.
    const at::Tensor& vectors = slice.moments[1][i];
    const std::int64_t side = std::min(shape.rows, shape.columns);
    const std::int64_t other_side = std::min(other.rows, other.columns);
    return spectral_norm(stored(slice.values[i], shape), vectors.narrow(0, 0, side)) +
           spectral_norm(
               stored(own.partner->as_strided({own.partner->numel()}, {1}), other),
               vectors.narrow(0, vectors.numel() - other_side, other_side)) +
           1;
  }

  // Gives each matrix the Frobenius norm sqrt(rows).
  static void normalize(const Slice& slice, const std::vector<ParameterRef>& parameters) {
    for (std::size_t i = 0; i < slice.values.size(); ++i) {
      const auto rows = static_cast<double>(parameters[slice.indices[i]].tensor->size(0));
      slice.values[i].mul_(at::linalg_vector_norm(slice.values[i])
                               .clamp_min_(kSmallestNorm)
                               .reciprocal_()
                               .mul_(std::sqrt(rows)));
    }
  }

  static constexpr double kSmallestNorm = 1e-7;  // weights of 0 stay 0

  at::ScalarType precision_ = at::kFloat;
  NewtonSchulz newton_schulz_;
};

}  // namespace

const OptimizerKind kMuon{
    .name = "muon",
    .make = make<Muon>,
    .fixes_norms =
        [](const OptimizerOptions& o) {
          return o.scale == MuonScale::Normalized && o.matrices == MuonMatrices::All;
        },
    .check =
        [](const OptimizerOptions& o) {
          return o.fraction < 1 && o.nesterov.value_or(false)
                 ? Conflicts{{{"optimizer.nesterov", "optimizer.fraction"},
                              "a fraction of the rows has no Nesterov form"}}
                 : check_nesterov(o);
        }};

}  // namespace abtrain::optim
