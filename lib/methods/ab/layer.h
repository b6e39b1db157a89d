// A layer that AB-training may factor, and its state.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "linalg/svd.h"
#include "methods/ab/gather_layers.h"
#include "methods/method.h"
#include "nn/model.h"

namespace abtrain::methods {

struct AbLayer {
  // The optimizer's state of a trained tensor of the layer: a factor or the dense weight.
  struct Moments {
    at::Tensor steps;
    std::vector<at::Tensor> values;  // one per moment buffer, laid out like the tensor
  };

  explicit AbLayer(const nn::NamedWeight& weight)
      : named(weight), cut{weight.layer, weight.weight->m(), weight.weight->n()} {
    cut.grid = grid();
  }

  nn::Weight& weight() const {
    return *named.weight;
  }
  // Rank of the weight's factors; 0: dense.
  std::int64_t rank() const {
    return weight().rank();
  }
  std::int64_t grid() const {
    return weight().grid();
  }
  bool is_product() const {
    return product.a.defined();
  }
  // Makes the weight dense if it is a product, and drops the product.
  void multiply_out() {
    if (is_product()) {
      weight().set_dense(weight().from_matrix(at::matmul(product.a, product.b)));
      product = {};
    }
  }
  // The factor `which`, of this rank, at `offset` in a flat buffer of factors, as in a LowRankPair;
  // undefined if the buffer is.
  at::Tensor matrix_at(
      const at::Tensor& flat, std::int64_t offset, nn::Factor which, std::int64_t rank) const {
    return flat.defined()
               ? weight().to_matrix(
                     which, nn::view_at(flat, offset, weight().stored_sizes(which, rank)))
               : at::Tensor();
  }
  // The sizes of the product or dense weight that the next decomposition splits.
  LayerShape shape() const {
    return {cut.m, cut.n, is_product() ? grid() * product.a.size(-1) : 0, grid()};
  }

  nn::NamedWeight named;
  LayerRank cut;  // result of the last decomposition
  // From a synchronization to the end of the decomposition after it: the merged factors A B
  // (bit-identical on all workers), of rank 2 old_rank in SyncMode::Full. Undefined at other times
  // and for a dense weight.
  linalg::LowRankPair product;
  // Only during a decomposition: the rank before it (0: dense), the new factors (undefined if the
  // layer stays dense), and the old moments.
  std::int64_t old_rank = 0;
  linalg::LowRankPair factors;
  std::vector<Moments> moments;  // of each factor that this worker trains
};

// The element count of the factors `which` of all layers. `rank`: gives the rank of a layer; a
// function or a member of AbLayer.
template <class Rank>
std::int64_t factor_numel(const std::vector<AbLayer>& layers, nn::Factor which, const Rank& rank) {
  std::int64_t numel = 0;
  for (const AbLayer& layer : layers) {
    numel += layer.weight().factor_numel(which, std::invoke(rank, layer));
  }
  return numel;
}

}  // namespace abtrain::methods
