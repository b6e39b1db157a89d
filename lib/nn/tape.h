// A record of the Linear and convolution layers of one forward and backward
// pass, from which nn/example_gradients.h computes the per-example gradients.
// With a tape, each trained weight belongs to one linear map: factors are
// applied one after the other, never multiplied out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace abtrain::nn {

// A weight, a bias or both, and the map in which they are applied:
// - weight O x I, inputs B x ... x I: a linear map;
// - weight O x I x kh x kw, inputs B x I x H x W: a convolution;
// - weight O x I x kh x kw, inputs B x I: a convolution without padding of
//   images that are kh x kw equal pixels.
struct LinearMap {
  at::Tensor weight;  // the leaf itself; undefined if not trained
  at::Tensor bias;    // the same
  at::Tensor input;   // undefined if the weight is not trained
  std::int64_t examples = 0;
  // The gradient of the map's own result, even if that result is later changed
  // in place: (B * ...) x O or B x O x H' x W'. Undefined before the backward
  // pass. Shared with its hook.
  std::shared_ptr<at::Tensor> gradient = nullptr;
  std::int64_t stride = 1;  // for a convolution
  std::int64_t padding = 0;
  // As many maps side by side, each of its slice of the inputs (of I features or channels) to its
  // slice of the outputs by its slice of the weight's rows: the weight's I is then that of a slice.
  std::int64_t groups = 1;
};

struct Tape {
  std::vector<LinearMap> maps;  // of one pass: clear them before the next

  // Takes the weight, bias, input, stride and padding from `map`. `output` must
  // be what the map computed, not a view: the hook of a view that is then
  // written in place would never be called.
  void record(LinearMap map, const at::Tensor& output);
};

// grouped_linear() in this type, recorded if there is a tape. The bias may be undefined.
at::Tensor linear(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type,
    Tape* tape, std::int64_t groups = 1);

// The tensor in this type; an undefined one stays so.
at::Tensor cast(const at::Tensor& tensor, at::ScalarType type);

}  // namespace abtrain::nn
