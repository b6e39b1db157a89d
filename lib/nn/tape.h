// A record of the Linear and convolution layers in one forward and backward pass, from which
// nn/example_gradients.h computes the per-example gradients. With a tape, each trained weight
// belongs to one linear map: factors are applied one after another, never multiplied out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace abtrain::nn {

// A weight, a bias or both, and the recorded map that applied them:
// - weight O x I, inputs B x ... x I: a linear map;
// - weight O x I x kh x kw, inputs B x I x H x W: a convolution;
// - weight O x I x kh x kw, inputs B x I: a convolution without padding of
//   images that are kh x kw equal pixels.
struct LinearMap {
  at::Tensor weight;  // the leaf itself; undefined if not trained
  at::Tensor bias;    // likewise
  at::Tensor input;   // undefined if the weight is not trained
  std::int64_t examples = 0;
  // The gradient of the map's own result, even if that result is later changed in place: (B * ...)
  // x O or B x O x H' x W'. Undefined before the backward pass. Shared with the hook that sets it.
  std::shared_ptr<at::Tensor> gradient = nullptr;
  std::int64_t stride = 1;  // for a convolution
  std::int64_t padding = 0;
  // This many maps side by side. Each maps its slice of the inputs to its slice of the outputs by
  // its slice of the weight's rows; the weight's I counts the inputs of one slice.
  std::int64_t groups = 1;
};

struct Tape {
  std::vector<LinearMap> maps;  // of one pass; clear them before the next

  // Adds `map`, with its weight, bias, input, stride, padding and groups set. `output` must be the
  // map's direct result, not a view: the hook of a view that is later written in place is never
  // called.
  void record(LinearMap map, const at::Tensor& output);
};

// Applies a linear map as grouped_linear() does and, if there is a tape, records it. The bias may
// be undefined.
at::Tensor linear(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type,
    Tape* tape, std::int64_t groups = 1);

// Converts the tensor to this type; an undefined tensor stays undefined.
at::Tensor cast(const at::Tensor& tensor, at::ScalarType type);

}  // namespace abtrain::nn
