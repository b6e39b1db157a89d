// The leading singular values and vectors of a large matrix, from its float64
// Gram matrix G: as many as a rank rule asks for and no more.
//
// A block Krylov space (Musco and Musco 2015; Halko, Martinsson and Tropp 2011)
// grows block by block from a start that is random, or random inside the basis
// of the last decomposition. It stops when the values that the rule keeps have
// converged and it is PROVEN that none is missing: Ritz values are never above
// the true ones, and if u I - G + V diag(values) V^T has a Cholesky factor, at
// most as many eigenvalues as V has columns are above u. That is certain up to
// rounding and takes a third of the flops of G itself, whereas probes (Halko et
// al., 4.3) give a bound that is eight times too loose and holds only with some
// probability. Nothing depends on the device; a layer's start is the same every
// time.
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
  // decomposition, or undefined. layer: seeds the random numbers.
  RangeFinder(const at::Tensor& gram, const std::string& layer, const at::Tensor& warm);

  // Grows the space until the rule's choice for an m x n matrix is decided.
  // Returns false if the space would exceed half of n, where the exact route
  // costs no more: the caller should then take that. The budget rule is not
  // allowed, since it spans several layers.
  bool capture(const RankRule& rule, std::int64_t m);

  // What the last capture() proved.
  struct Proven {
    // Eigenvalues of G, descending; their square roots are within 1e-7 of the
    // largest.
    std::vector<double> eigenvalues;
    at::Tensor vectors;      // orthonormal rows, one per eigenvalue
    double rest_energy = 0;  // of the others
    double rest_bound = 0;   // no other singular value is above this
  };
  const Proven& proven() const {
    return proven_;
  }
  // A starting block (rows, fp32) for the search in a matrix that has changed a
  // little: random mixtures of proven().vectors. It saves one block out of about
  // ten.
  at::Tensor next_start() const;

  const at::Tensor& gram() const {
    return gram_;
  }
  // The size of the space by now: what the search has cost.
  std::int64_t basis_size() const {
    return size_;
  }

 private:
  struct Ritz;

  at::Tensor random_rows(std::int64_t count, std::int64_t length) const;
  // The rows, made orthonormal to each other and to the space.
  at::Tensor orthonormalize(at::Tensor rows) const;
  void append(const at::Tensor& rows);
  // False if nothing more fits.
  bool grow_to(std::int64_t size);
  Ritz ritz() const;
  bool publish_dense(const RankRule& rule, std::int64_t m, const Ritz& ritz);
  bool publish(const RankRule& rule, std::int64_t m, const Ritz& ritz, std::int64_t rank);
  bool none_above(double level, const Ritz& ritz, std::int64_t rank) const;
  bool is_hopeless(const RankRule& rule, std::int64_t m, const Ritz& ritz) const;
  Spectrum spectrum_of(
      const std::vector<double>& eigenvalues, std::int64_t m, double rest_bound) const;

  at::Tensor gram_;
  std::string layer_;
  std::int64_t n_;
  std::int64_t block_;  // rows added at a time
  std::int64_t limit_;  // largest size of the space
  double trace_;        // of G: the energy of all values
  bool cold_;
  at::Tensor start_;  // the first block, as rows
  mutable std::uint32_t drawn_ = 0;

  at::Tensor space_;    // limit x n; `size_` rows are in use
  at::Tensor product_;  // space * G
  std::int64_t size_ = 0;
  bool restart_ = false;  // the next block is random

  Proven proven_;
};

}  // namespace abtrain::linalg
