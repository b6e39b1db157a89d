// Parameters that are trained, averaged and sent together: their values,
// gradients and optimizer moments lie in flat fp32 buffers, so that a
// collective takes one call and an optimizer step one fused pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "state/archive.h"

namespace abtrain::optim {

struct ParameterRef {
  std::string name;
  at::Tensor* tensor = nullptr;  // rebound to a view of the flat buffer
  bool decays = true;            // weight decay applies
  bool is_factor = false;        // takes method.factor_lr_scale
  int position = 0;              // in the order of the forward pass
};

// Parameters of a block that share one decay and one rate, as fused kernels
// want them: flat views, one a parameter in each list.
struct Slice {
  bool decays = true;
  bool is_factor = false;
  std::vector<at::Tensor> values, gradients, steps;
  std::vector<std::vector<at::Tensor>> moments;
};

class ParameterBlock {
 public:
  ParameterBlock() = default;
  // Packs the tensors, in order, and rebinds them. `trained` ones get a gradient
  // and `moments` flat buffers of optimizer state (zero, step count 0).
  ParameterBlock(
      std::vector<ParameterRef> parameters, bool trained, int moments);

  const std::vector<ParameterRef>& parameters() const {
    return parameters_;
  }
  // Begin of a parameter in the flat buffers; index == count gives the end.
  std::int64_t offset(std::size_t index) const {
    return offsets_[index];
  }
  std::int64_t numel() const {
    return values_.defined() ? values_.numel() : 0;
  }

  at::Tensor& values() {
    return values_;
  }
  at::Tensor& gradients() {
    return gradients_;
  }
  // moments x numel, flat.
  at::Tensor& moments() {
    return moments_;
  }
  int moment_count() const {
    return moment_count_;
  }

  // Flat views that the optimizer works on, one a parameter: of others than
  // row-major ones LibTorch's fused kernels would copy the gradients.
  const std::vector<at::Tensor>& value_views() const {
    return value_views_;
  }
  const std::vector<at::Tensor>& moment_views(int which) const {
    return moment_views_[static_cast<std::size_t>(which)];
  }
  // Steps taken since the moments were zero, one fp32 scalar tensor each.
  const std::vector<at::Tensor>& steps() const {
    return steps_;
  }

  // The block in slices; `decay_all`: parameters that do not decay do so too.
  // Made once for the block.
  const std::vector<Slice>& slices(bool decay_all);

  // Backward passes add to the flat gradients in place: zero them before the
  // first of a step.
  void zero_gradients();
  // Gives their memory back; no backward pass may follow.
  void drop_gradients();

  // Takes over the moments and step counts of parameters of the same name and
  // size. Factors keep their zeros: their basis is new.
  void adopt(const ParameterBlock& old);
  // Values, moments, step counts and how each parameter lies in memory. Loading:
  // into a block of the same parameters.
  void archive(
      state::Archive& archive, const std::string& prefix, state::Share share);
  // Sets the moments and the step count of the named parameter to zero.
  void forget(const std::string& name);

 private:
  void lay_out(std::size_t index, const std::vector<std::int64_t>& strides);

  std::vector<ParameterRef> parameters_;
  std::vector<std::int64_t> offsets_;
  at::Tensor values_, gradients_, moments_;
  int moment_count_ = 0;
  std::vector<at::Tensor> value_views_, gradient_views_, steps_;
  std::vector<std::vector<at::Tensor>> moment_views_;
  std::vector<Slice> slices_;
  bool slices_decay_all_ = false;
};

}  // namespace abtrain::optim
