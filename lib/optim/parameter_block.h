// Parameters that are trained, averaged and sent together. Their values, gradients and optimizer
// moments lie in flat fp32 buffers, so that a collective is one call and an optimizer step one
// fused pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "optim/optim_options.h"
#include "state/archive.h"

namespace abtrain::optim {

struct ParameterRef {
  std::string name;
  at::Tensor* tensor = nullptr;   // rebound to a view of the flat buffer
  bool decays = true;             // weight decay applies
  bool is_factor = false;         // a factor of a weight: method.factor_lr_scale applies
  int position = 0;               // in the order of the forward pass
  std::int64_t matrices = 1;      // number of matrices stacked vertically in it
  bool halves_decay = false;      // half the decay: the weight's other factor gets the rest
};

// Parameters of a block that are trained alike, in the form that fused kernels expect: lists of
// flat views, one per parameter. The views are flat because the kernels would copy gradients that
// are not row-major.
struct Slice {
  bool decays = true;
  bool is_factor = false;
  bool is_matrix = false;                 // matrices or convolutions
  bool halves_decay = false;
  std::vector<std::size_t> indices = {};  // positions in the block
  std::vector<at::Tensor> values = {}, gradients = {}, steps = {};
  std::vector<std::vector<at::Tensor>> moments = {};

  // The weight decay that applies to these parameters.
  double decay(const OptimizerOptions& options) const;
};

class ParameterBlock {
 public:
  ParameterBlock() = default;
  // Copies the tensors, in order, into one flat buffer and rebinds them to views of it. If
  // `trained` is set, they get gradients and `moments` flat buffers of optimizer state (all zeros,
  // step counts 0).
  ParameterBlock(std::vector<ParameterRef> parameters, bool trained, int moments);

  const std::vector<ParameterRef>& parameters() const {
    return parameters_;
  }
  // The index of the parameter with this name, which must exist.
  std::size_t index_of(const std::string& name) const;
  // The offset of a parameter's first element in the flat buffers; index == count gives the end.
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
  // Flat: all moment buffers, each of numel() elements, one after another.
  at::Tensor& moments() {
    return moments_;
  }
  int moment_count() const {
    return static_cast<int>(all_.moments.size());
  }

  // One moment buffer as flat views, one per parameter.
  const std::vector<at::Tensor>& moment_views(int which) const {
    return all_.moments[static_cast<std::size_t>(which)];
  }
  // Steps taken since the moments were zero, one fp32 scalar tensor per parameter.
  const std::vector<at::Tensor>& steps() const {
    return all_.steps;
  }
  // The counts of steps(), as one tensor.
  at::Tensor& step_counts() {
    return steps_;
  }

  // The block's slices; none if it is not trained.
  const std::vector<Slice>& slices() const {
    return slices_;
  }

  // Backward passes add to the flat gradients in place, so zero them before the first backward pass
  // of a step.
  void zero_gradients();
  // Frees the gradients' memory; no backward pass may follow.
  void drop_gradients();

  // Copies the moments and step counts of those of `old`'s parameters that have the same name and
  // element count; they must also have the same strides. The moments of factors stay zero, because
  // new factors have another basis.
  void adopt(const ParameterBlock& old);
  // Saves or loads the values, moments, step counts and memory layout of each parameter. Load into
  // a block of the same parameters.
  void archive(state::Archive& archive, const std::string& prefix, state::Owner owner);

 private:
  // Adds a parameter, once its views exist, to the slice of parameters that are trained like it.
  void add_to_slice(std::size_t i);
  void lay_out(std::size_t index, const std::vector<std::int64_t>& strides);

  std::vector<ParameterRef> parameters_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::vector<std::int64_t>> strides_;  // one list per parameter
  at::Tensor values_, gradients_, moments_;
  at::Tensor steps_;  // one per parameter
  Slice all_;         // views of all parameters
  std::vector<Slice> slices_;
};

}  // namespace abtrain::optim
