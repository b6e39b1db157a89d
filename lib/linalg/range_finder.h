// The leading singular values and vectors of a large matrix, from its float64
// Gram matrix G, for as many as a rank rule asks for and no more.
//
// A block Krylov space (Musco and Musco 2015; Halko, Martinsson and Tropp 2011)
// from a random start, or from one inside of the basis of the last time, grows
// block by block.
// It stops when the values that the rule keeps have converged and it is PROVEN
// that none is missing: Ritz values are never above the true ones, and where
// u I - G + V diag(values) V^T has a Cholesky factor, at most as many
// eigenvalues as V has columns are above u. That is certain up to rounding,
// where probes (Halko et al., 4.3) give a bound eight times too loose that
// holds with some probability, and takes a third of the flops of G itself.
// Nothing depends on the device; the start is the same for a layer every time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linalg/rank_rule.h"

namespace abtrain::linalg {

class RangeFinder {
 public:
  // gram: n x n, float64, finite and not zero. warm: next_start() of the last
  // time, or undefined. layer: seeds what is random.
  RangeFinder(
      const at::Tensor& gram,
      const std::string& layer,
      const at::Tensor& warm);

  // Until the rule's choice for an m x n matrix is decided by spectrum(). False
  // where the space would pass half of n, which costs what the exact route
  // costs: then the caller takes that. The budget rule is not for one layer.
  bool capture(const RankRule& rule, std::int64_t m);

  // What the last capture proved. Values are square roots of G's eigenvalues,
  // within 1e-7 of the largest.
  const std::vector<double>& eigenvalues() const {
    return values_;
  }
  double rest_energy() const {
    return rest_energy_;
  }
  double rest_bound() const {  // no other singular value is above
    return rest_bound_;
  }
  // n x k orthonormal columns, k <= eigenvalues().size().
  at::Tensor right(std::int64_t k) const;
  // A block (rows, fp32) for the search in a matrix that has changed a little:
  // random mixtures of what right() gives. It saves one block of about ten.
  at::Tensor next_start() const;

  const at::Tensor& gram() const {
    return gram_;
  }
  // Columns of the space by now: what the search has cost.
  std::int64_t basis_size() const {
    return size_;
  }

 private:
  struct Ritz;

  at::Tensor random_rows(std::int64_t count, std::int64_t length) const;
  // Rows made orthonormal to each other and to the space.
  at::Tensor orthonormalise(at::Tensor rows) const;
  void append(const at::Tensor& rows);
  // False where nothing more fits.
  bool grow_to(std::int64_t size);
  Ritz ritz() const;
  bool publish_dense(const RankRule& rule, std::int64_t m, const Ritz& ritz);
  bool publish(
      const RankRule& rule,
      std::int64_t m,
      const Ritz& ritz,
      std::int64_t rank);
  bool none_above(double level, const Ritz& ritz, std::int64_t rank) const;
  bool is_hopeless(const RankRule& rule, std::int64_t m, const Ritz& ritz)
      const;
  Spectrum spectrum_of(
      const std::vector<double>& eigenvalues,
      std::int64_t m,
      double rest_bound) const;

  at::Tensor gram_;
  std::string layer_;
  std::int64_t n_;
  std::int64_t block_;  // rows that are added at a time
  std::int64_t limit_;  // of the space
  double trace_;        // of G: the energy of all
  bool cold_;
  at::Tensor start_;  // rows: the first block
  mutable std::uint32_t drawn_ = 0;

  at::Tensor space_;    // limit x n, rows; `size_` of them are in use
  at::Tensor product_;  // space * G
  std::int64_t size_ = 0;
  bool restart_ = false;  // the next block is random

  std::vector<double> values_;  // proven, descending
  at::Tensor vectors_;          // rows
  double rest_energy_ = 0;
  double rest_bound_ = 0;
};

}  // namespace abtrain::linalg
