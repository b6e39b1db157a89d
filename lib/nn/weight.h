// The weight of a Linear or conv layer: dense, or as low-rank factors.
//
// Dense: O x I or O x I x kh x kw (channels-last in memory). As a matrix it is
// O x (I*kh*kw), transposed if it has fewer rows than columns, so that W is
// always m x n with m >= n, W ~= A * B, A m x r (the big factor), B r x n.
//
// A forward pass applies the factors one after the other, and they are stored
// in the form that it needs: `inner` (r x I or r x I x kh x kw) is applied
// first, `outer` (O x r) second. Not transposed: inner = B, outer = A.
// Transposed: inner = A^T, outer = B^T.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "linalg/svd.h"

namespace abtrain::nn {

enum class Factor { A, B };

class Weight {
 public:
  // sizes: O x I, or O x I x kh x kw. Weights that are `fixed` (grouped
  // convolutions) are never factored.
  explicit Weight(std::vector<std::int64_t> sizes, bool fixed = false)
      : sizes_(std::move(sizes)), fixed_(fixed) {}

  const std::vector<std::int64_t>& sizes() const {
    return sizes_;
  }
  std::int64_t out_features() const {
    return sizes_[0];
  }
  std::int64_t in_features() const;  // I * kh * kw
  std::int64_t numel() const {
    return out_features() * in_features();
  }
  bool is_conv() const {
    return sizes_.size() == 4;
  }
  bool is_fixed() const {
    return fixed_;
  }
  bool transposed() const {
    return out_features() < in_features();
  }
  std::int64_t m() const {
    return std::max(out_features(), in_features());
  }
  std::int64_t n() const {
    return std::min(out_features(), in_features());
  }

  bool is_factored() const {
    return inner.defined();
  }
  std::int64_t rank() const {
    return is_factored() ? inner.size(0) : 0;
  }
  // The tensor that stores a factor.
  at::Tensor& factor(Factor which) {
    return is_inner(which) ? inner : outer;
  }
  // Element count of a factor at the given rank.
  std::int64_t factor_numel(Factor which, std::int64_t rank) const {
    return rank * (which == Factor::A ? m() : n());
  }

  // m x n, a view of the dense weight where strides allow it.
  at::Tensor matrix() const {
    return to_matrix(dense);
  }
  // The dense weight that an m x n matrix represents, laid out like `dense`.
  at::Tensor from_matrix(const at::Tensor& matrix) const;
  // Replaces whatever the weight holds by factors A (m x r) and B (r x n), or
  // by a dense weight (undefined: nothing).
  void set_factors(const linalg::LowRankPair& pair);
  void set_dense(at::Tensor weight);
  // The factors as A (m x r) and B (r x n), views where strides allow it.
  linalg::LowRankPair pair() const;
  // The dense or merged weight, O x I (x kh x kw); a new tensor if factored.
  at::Tensor merged() const;
  // True if forming A B and one dense pass take fewer flops than applying the
  // factors one after the other, for a pass over `positions` (rows of a linear
  // layer, output pixels of a convolution): m n r + P m n < P r (m + n). This
  // never holds at a rank that saves parameters, so only in an uncut phase.
  bool product_is_cheaper(std::int64_t positions) const;

  // Shape of a factor as it is stored, at the given rank.
  std::vector<std::int64_t> stored_sizes(Factor which, std::int64_t rank) const;
  // Convert a factor from a matrix (m x r or r x n) to its stored form, and
  // back (a view where strides allow it).
  at::Tensor to_stored(Factor which, const at::Tensor& matrix) const;
  at::Tensor to_matrix(const at::Tensor& stored) const;

  at::Tensor dense;  // undefined while factored
  at::Tensor inner;  // undefined while dense
  at::Tensor outer;

 private:
  bool is_inner(Factor which) const {
    return (which == Factor::A) == transposed();
  }
  std::vector<std::int64_t> sizes_;
  bool fixed_;
};

// A view of a contiguous run of numbers as a tensor: 4-D sizes are laid out O x
// kh x kw x I in memory (channels-last), others row-major.
at::Tensor view_at(
    const at::Tensor& flat, std::int64_t offset, const std::vector<std::int64_t>& sizes);

}  // namespace abtrain::nn
