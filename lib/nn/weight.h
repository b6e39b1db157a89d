// The weight of a Linear or conv layer: dense, or as low-rank factors.
//
// Dense: O x I or O x I x kh x kw (channels-last in memory). As a matrix, the weight is O x
// (I*kh*kw), transposed if it has fewer rows than columns. So W is always m x n with m >= n, and W
// ~= A * B, with A m x r (the big factor) and B r x n.
//
// A forward pass applies the factors one after another, and they are stored in the form that it
// needs: `inner` (r x I or r x I x kh x kw) is applied first, `outer` (O x r) second. Not
// transposed: inner = B, outer = A. Transposed: inner = A^T, outer = B^T.
//
// In a grid of k x k blocks, each block has its own factors, of rank s = r / k: as many parameters
// and operations as factors of rank r, but a product of rank up to k r. Inputs and outputs are
// split into k classes of neighbors. The block W_oi, for output class o and input class i, is
// outer_oi * inner_oi. `inner` (k r x I/k, or k r x I/k x kh x kw) stacks, for each input class i,
// the inner_oi of all o, as in the weight of a grouped convolution. `outer` (O x r) holds, for each
// output class o, the outer_oi of all i side by side.
//
// An adapter (LoRA, arXiv 2106.09685; PiSSA, 2404.02948) leaves the weight that it adapts
// unchanged: the weight is `rest` + scale * outer * inner, and only the factors are trained. Its A
// is always `inner` and its B always `outer`, even if B is larger: W^T - rest^T = scale * A * B.
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
  // sizes: O x I, or O x I x kh x kw. `fixed` weights (grouped convolutions) are never factored.
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
    return adapts_ || out_features() < in_features();
  }
  std::int64_t m() const {
    return transposed() ? in_features() : out_features();
  }
  // At most m, except for an adapter's weight.
  std::int64_t n() const {
    return transposed() ? out_features() : in_features();
  }
  std::int64_t largest_rank() const {
    return std::min(m(), n());
  }

  // Whether the factors are an adapter's.
  bool adapts() const {
    return adapts_;
  }
  void set_adapts(bool adapts) {
    adapts_ = adapts;
  }
  // Whether the weight is dense and not trained.
  bool is_frozen() const {
    return frozen_ && !adapts_ && !is_factored();
  }
  void set_frozen(bool frozen) {
    frozen_ = frozen;
  }
  // Copies adapts(), the grid, `rest`, `scale` and `start` from a weight of the same sizes.
  void adopt_form(const Weight& other);

  // k: the number of blocks per side of the factors' grid, a divisor of the inputs I and the
  // outputs O.
  std::int64_t grid() const {
    return grid_;
  }
  void set_grid(std::int64_t grid) {
    grid_ = grid;
  }

  bool is_factored() const {
    return inner.defined();
  }
  // r, a multiple of the grid; 0 if dense.
  std::int64_t rank() const {
    return is_factored() ? outer.size(1) : 0;
  }
  // The tensor that stores a factor.
  at::Tensor& factor(Factor which) {
    return is_inner(which) ? inner : outer;
  }
  // Element count of a factor at the given rank.
  std::int64_t factor_numel(Factor which, std::int64_t rank) const {
    return rank * (which == Factor::A ? m() : n());
  }

  // The dense weight as a matrix: m x n, or k x k x m/k x n/k in a grid; a view if strides allow
  // it.
  at::Tensor matrix() const {
    return to_matrix(dense);
  }
  // The inverse: converts a matrix to a weight laid out like `dense`.
  at::Tensor from_matrix(const at::Tensor& matrix) const;
  // Replace the weight's contents by factors and their grid, or by a dense weight (may be
  // undefined).
  void set_factors(const linalg::LowRankPair& pair);
  void set_dense(at::Tensor weight);
  // Replaces the weight's contents by factors of this rank or, for rank 0, a dense weight, with
  // uninitialized values.
  void set_empty(std::int64_t rank, const at::TensorOptions& options);
  // The factors, as views if strides allow it.
  linalg::LowRankPair pair() const;
  // The dense or merged weight, O x I (x kh x kw); a new tensor if factored.
  at::Tensor merged() const;
  // Returns an adapter's change of the initial weight as a product: scale * A * B minus the product
  // of `start`. With a `start`, the pair has twice the rank.
  linalg::LowRankPair change() const;
  // True if forming A B and making one dense pass takes fewer flops than applying the factors one
  // after another, for a pass over `positions` (rows of a linear layer, output pixels of a
  // convolution): m n s + P m n < P r (m + n). This never holds at a rank that saves parameters, so
  // it applies only in an uncut phase.
  bool product_is_cheaper(std::int64_t positions) const;

  // Shape of a factor as it is stored, at the given rank.
  std::vector<std::int64_t> stored_sizes(Factor which, std::int64_t rank) const;
  // matrix() for any tensor that is laid out like `dense`.
  at::Tensor to_matrix(const at::Tensor& weight) const;
  // Convert a factor from the form of a LowRankPair to its stored form, and back (a view if strides
  // allow it).
  at::Tensor to_stored(Factor which, const at::Tensor& matrix) const;
  at::Tensor to_matrix(Factor which, const at::Tensor& stored) const;

  at::Tensor dense;  // undefined while factored
  at::Tensor inner;  // undefined while dense
  at::Tensor outer;
  // The frozen part of an adapter's weight, fp32 or bf16, laid out like `dense`. Without an
  // adapter, `rest` is undefined and `scale` 1.
  at::Tensor rest;
  double scale = 1;
  // An adapter's first factors: their product plus `rest` is the initial weight. Undefined: `rest`
  // is that weight.
  linalg::LowRankPair start;

 private:
  bool is_inner(Factor which) const {
    return (which == Factor::A) == transposed();
  }
  // If transposed(), transposes a matrix, a factor or each block of a grid, for either direction.
  at::Tensor turned(const at::Tensor& matrix) const;
  std::vector<std::int64_t> sizes_;
  bool fixed_;
  bool frozen_ = false;
  bool adapts_ = false;
  std::int64_t grid_ = 1;
};

// Views a contiguous run of numbers as a tensor: 4-D sizes are laid out O x kh x kw x I in memory
// (channels-last), others row-major.
at::Tensor view_at(
    const at::Tensor& flat, std::int64_t offset, const std::vector<std::int64_t>& sizes);

}  // namespace abtrain::nn
