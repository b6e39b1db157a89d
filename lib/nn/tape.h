// What the Linear and convolution layers of one forward and backward pass leave
// behind, from which nn/example_gradients.h takes the gradients of the single
// examples. With a tape each trained weight is that of one linear map: factors
// are applied one after the other, never multiplied out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace abtrain::nn {

// A weight, a bias or both, and the map that they are applied in:
// - weight O x I: to inputs B x ... x I;
// - weight O x I x kh x kw, inputs B x I x H x W: a convolution;
// - weight O x I x kh x kw, inputs B x I: a convolution of images of kh x kw
//   equal pixels, without padding.
struct LinearMap {
  at::Tensor weight;  // the leaf itself; undefined: not trained
  at::Tensor bias;    // the same
  at::Tensor input;   // undefined without a trained weight
  std::int64_t examples = 0;
  // Of the map's own result, whatever is done to it in place: (B * ...) x O or
  // B x O x H' x W'. Undefined before the backward pass. Shared with its hook.
  std::shared_ptr<at::Tensor> gradient = nullptr;
  std::int64_t stride = 1;  // of a convolution
  std::int64_t padding = 0;
};

class Tape {
 public:
  const std::vector<LinearMap>& maps() const {
    return maps_;
  }
  // Before the next forward pass.
  void clear() {
    maps_.clear();
  }
  // Of `map` the weight, bias, input, stride and padding. `output` is what the
  // map computed, not a view: of a view that is then written in place a hook
  // would never be called.
  void record(LinearMap map, const at::Tensor& output);

 private:
  std::vector<LinearMap> maps_;
};

// at::linear, recorded where there is a tape.
at::Tensor linear(
    const at::Tensor& input,
    const at::Tensor& weight,
    const at::Tensor& bias,
    Tape* tape);

}  // namespace abtrain::nn
