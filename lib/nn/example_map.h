// One linear map of a tape, and its contribution to the inner products and sums
// of per-example gradients. The methods have the same names as those of
// nn/example_gradients.h.
//
// At each of an example's T positions, outputs = W inputs + b, with W: O x K.
// For a convolution, the K inputs are its channels times the kernel's pixels,
// and its positions are the output's pixels. Tokens are positions, too.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "nn/tape.h"

namespace abtrain::nn {

// A trained parameter and its offset in flat vectors.
struct Placed {
  at::Tensor tensor;
  std::int64_t offset = 0;

  // Its place in such a vector.
  at::Tensor in(const at::Tensor& vector) const;
  // The same in `count` rows, from row `first` on.
  at::Tensor in(const at::Tensor& rows, std::int64_t first, std::int64_t count) const;
};

class ExampleMap {
 public:
  // Works in pieces of at most `scratch` bytes. Subtracts from `budget` the
  // bytes of what it keeps.
  ExampleMap(
      const LinearMap& map, std::optional<Placed> weight, std::optional<Placed> bias,
      std::int64_t scratch, std::int64_t& budget);

  at::TensorOptions options() const {
    return gradient_.options();
  }
  void add_products(const at::Tensor& sums) const;
  void add_products(const at::Tensor& sums, const at::Tensor& vector) const;
  void add(const at::Tensor& vector, const at::Tensor& coefficients) const;
  void differences(const at::Tensor& rows) const;

 private:
  // How the weight's gradients are multiplied with each other: by the inner
  // products of the inputs and output gradients of all positions, or from
  // gradients that are built and kept, or built a few channels at a time.
  enum class Way { Positions, Kept, Channels };
  Way choose(std::int64_t budget) const;

  std::int64_t examples() const {
    return gradient_.size(0);
  }
  std::int64_t positions() const {
    return gradient_.size(1);
  }
  std::int64_t outputs() const {
    return gradient_.size(2);
  }
  std::int64_t pixels() const {  // in the kernel
    const at::Tensor& weight = weight_->tensor;
    return weight.dim() == 4 ? weight.size(2) * weight.size(3) : 1;
  }
  std::int64_t input_width() const {  // K
    return is_conv_ ? input_.size(1) * pixels() : input_.size(2);
  }
  std::int64_t bytes_to_keep() const {
    return examples() * outputs() * input_width() * gradient_.element_size();
  }
  // How many pieces of `numbers` numbers each fit in the scratch; at least one.
  std::int64_t pieces(std::int64_t numbers) const {
    return std::max<std::int64_t>(1, scratch_ / (numbers * gradient_.element_size()));
  }

  at::Tensor unfolded(const at::Tensor& input) const;
  at::Tensor as_weight(const at::Tensor& matrix) const;
  at::Tensor built() const;
  at::Tensor weight_products_by_positions() const;
  void add_weight_products_by_channels(const at::Tensor& sums) const;
  at::Tensor outputs_of(const at::Tensor& weight) const;
  void add_to_weight(const at::Tensor& weight, const at::Tensor& scaled) const;

  std::optional<Placed> weight_, bias_;
  at::Tensor input_;     // B x T x K; for a convolution B x I x H x W
  at::Tensor gradient_;  // of the outputs, B x T x O
  bool is_conv_ = false;
  // A convolution of images whose pixels are all equal: the map's weight, O x
  // I, is the sum over the kernel's pixels, all of which have equal gradients.
  bool has_equal_pixels_ = false;
  std::int64_t stride_, padding_;
  std::vector<std::int64_t> output_sides_;  // for a convolution
  std::int64_t scratch_;
  Way way_ = Way::Positions;
  at::Tensor kept_;  // the weight's gradients, B x O x K
};

}  // namespace abtrain::nn
