#include "optim/newton_schulz.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ops/bf16_product.h"

namespace abtrain::optim {
namespace {

constexpr double kA = 3.4445;
constexpr double kB = -4.7750;
constexpr double kC = 2.0315;
constexpr double kEps = 1e-7;
// Elements per batch of matrices: enough to fill a GPU, but few enough to keep scratch memory
// small.
constexpr std::int64_t kBatchNumel = std::int64_t{1} << 24;

// On the CPU, a product that is a symmetric matrix with this many rows or more is computed only on
// and above the diagonal, in four horizontal strips, and then mirrored.
constexpr std::int64_t kMirroredSide = 512;

// out = beta base + alpha a b, for matrices or batches of them. If beta is 0, base is not read. If
// a and b are bf16 matrices, out and base may be fp32.
void add_product(
    at::Tensor out, const at::Tensor& base, double beta, const at::Tensor& a, const at::Tensor& b,
    double alpha) {
  if (a.dim() == 3) {
    at::baddbmm_out(out, base, a, b, beta, alpha);
  } else if (a.scalar_type() != out.scalar_type()) {
    ops::bf16_product(a, b, out, static_cast<float>(beta), static_cast<float>(alpha));
  } else {
    at::addmm_out(out, base, a, b, beta, alpha);
  }
}

// add_product() for symmetric out and base.
void add_symmetric(
    const at::Tensor& out, const at::Tensor& base, double beta, const at::Tensor& a,
    const at::Tensor& b, double alpha) {
  const std::int64_t side = out.size(-1);
  if (side < kMirroredSide || !out.is_cpu() || out.dim() == 3) {
    add_product(out, base, beta, a, b, alpha);
    return;
  }
  const std::int64_t height = (side + 3) / 4;
  for (std::int64_t begin = 0; begin < side; begin += height) {
    const std::int64_t end = std::min(begin + height, side);
    const auto part = [&](const at::Tensor& of, std::int64_t from, std::int64_t to) {
      return of.slice(0, begin, end).slice(1, from, to);
    };
    add_product(
        part(out, begin, side), part(base, begin, side), beta, a.slice(0, begin, end),
        b.slice(1, begin, side), alpha);
    out.slice(0, end).slice(1, begin, end).copy_(part(out, end, side).t());
  }
}

// The Frobenius norms, at least kEps: ... x 1 x 1, in fp32. Summing by rows first keeps more digits
// than one long sum.
at::Tensor norms_of(const at::Tensor& x) {
  const at::Tensor rows = at::linalg_vector_norm(x, 2, at::IntArrayRef{-1}, false, at::kFloat);
  return at::linalg_vector_norm(rows, 2, at::IntArrayRef{-1}, true).clamp_min_(kEps).unsqueeze_(-1);
}

// Takes all steps, alternately from `x` to `other` and back; returns whichever holds the result.
// Uses the smaller Gram matrix, since X p(X^T X) = p(X X^T) X.
at::Tensor iterate(
    at::Tensor x, at::Tensor other, const at::Tensor& gram, const at::Tensor& polynomial,
    std::int64_t steps, double scale) {
  const bool wide = x.size(-2) <= x.size(-1);
  for (std::int64_t step = 1; step <= steps; ++step) {
    const double factor = step == steps ? scale : 1;
    const at::Tensor turned = x.transpose(-2, -1);
    add_symmetric(gram, gram, 0, wide ? x : turned, wide ? turned : x, 1);
    add_symmetric(polynomial, gram, kB, gram, gram, kC);
    add_product(other, x, factor * kA, wide ? polynomial : x, wide ? x : polynomial, factor);
    std::swap(x, other);
  }
  return x;
}

// Takes the steps of iterate() on the smaller Gram matrix R. Each step multiplies X by
// Z = a + b R + c R^2, which turns R into Z R Z; X itself is needed only for the first R and at the
// end. In fp32, rounding R loses no more than the products of iterate() do; in bf16 it would lose
// more.
void iterate_on_gram(
    const at::Tensor& x, at::Tensor result, std::array<at::Tensor, 4> squares, std::int64_t steps,
    double scale) {
  auto& [r, z, q, next] = squares;
  const bool wide = x.size(0) <= x.size(1);
  const at::Tensor turned = x.t();
  add_symmetric(r, r, 0, wide ? x : turned, wide ? turned : x, 1);
  for (std::int64_t step = 1;; ++step) {
    add_symmetric(z, r, kB, r, r, kC);
    z.diagonal().add_(kA);
    if (step == 1) {
      q.copy_(z);
    } else {
      add_symmetric(next, q, 0, q, z, 1);
      std::swap(q, next);
    }
    if (step == steps) {
      break;
    }
    add_symmetric(next, r, 0, r, z, 1);
    add_symmetric(r, next, 0, next, z, 1);
  }
  q.mul_(scale);
  at::mm_out(result, wide ? q : x, wide ? x : q);
}

}  // namespace

void NewtonSchulz::apply(
    const std::vector<at::Tensor>& matrices, double scale, at::ScalarType precision) const {
  if (matrices.empty() || matrices.front().numel() == 0) {
    return;
  }
  if (!matrices.front().is_cpu()) {
    together(matrices, scale, at::kBFloat16);
  } else if (precision == at::kBFloat16) {
    in_bf16(matrices, scale);
  } else {
    one_by_one(matrices, scale);
  }
}

// Each step changes the matrix in place. Uses the smaller Gram matrix.
void NewtonSchulz::in_bf16(const std::vector<at::Tensor>& matrices, double scale) const {
  const at::Tensor& first = matrices.front();
  const std::int64_t side = std::min(first.size(0), first.size(1));
  const at::Tensor gram = at::empty({side, side}, first.options().requires_grad(false));
  for (const at::Tensor& matrix : matrices) {
    matrix.div_(norms_of(matrix));
    const at::Tensor x = matrix.size(0) <= matrix.size(1) ? matrix : matrix.t();
    for (std::int64_t step = 1; step <= steps; ++step) {
      const double factor = step == steps ? scale : 1;
      const at::Tensor rounded = x.to(at::kBFloat16);
      add_symmetric(gram, gram, 0, rounded, rounded.t(), 1);
      const at::Tensor square = gram.to(at::kBFloat16);
      add_symmetric(gram, gram, kB, square, square, kC);
      add_product(x, x, factor * kA, gram.to(at::kBFloat16), rounded, factor);
    }
  }
}

void NewtonSchulz::one_by_one(const std::vector<at::Tensor>& matrices, double scale) const {
  const at::Tensor& first = matrices.front();
  const std::int64_t side = std::min(first.size(0), first.size(1));
  // Flops: 4 side * numel + 34 side^3 on the Gram matrix, otherwise 20 side * numel + 10 side^3.
  const bool on_gram = 2 * first.numel() > 3 * side * side;
  const at::TensorOptions options = first.options().requires_grad(false);
  const auto square = [&] { return at::empty({side, side}, options); };
  at::Tensor x = at::empty(first.sizes(), options);
  for (const at::Tensor& matrix : matrices) {
    at::div_out(x, matrix, norms_of(matrix));
    if (on_gram) {
      iterate_on_gram(x, matrix, {square(), square(), square(), square()}, steps, scale);
    } else {
      matrix.copy_(iterate(x, matrix, square(), square(), steps, scale));
    }
  }
}

void NewtonSchulz::together(
    const std::vector<at::Tensor>& matrices, double scale, at::ScalarType type) const {
  const std::int64_t rows = matrices.front().size(0);
  const std::int64_t columns = matrices.front().size(1);
  const std::int64_t side = std::min(rows, columns);
  const auto most =
      static_cast<std::size_t>(std::max<std::int64_t>(1, kBatchNumel / (rows * columns)));
  for (std::size_t begin = 0; begin < matrices.size(); begin += most) {
    const std::size_t count = std::min(most, matrices.size() - begin);
    const auto n = static_cast<std::int64_t>(count);
    const at::TensorList batch(&matrices[begin], count);
    const at::TensorOptions options = matrices.front().options().dtype(type).requires_grad(false);
    const at::Tensor x = at::empty({n, rows, columns}, options);
    at::_foreach_copy_(x.unbind(), batch);
    x.div_(norms_of(x));
    const at::Tensor gram = at::empty({n, side, side}, options);
    at::_foreach_copy_(
        batch, iterate(x, at::empty_like(x), gram, at::empty_like(gram), steps, scale).unbind());
  }
}

}  // namespace abtrain::optim
