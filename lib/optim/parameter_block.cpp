#include "optim/parameter_block.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace abtrain::optim {

namespace {

// A tensor in the memory of the flat buffer, but not an autograd view of it.
at::Tensor view_of(
    const at::Tensor& flat, std::int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::Tensor view = at::empty({0}, flat.options());
  view.set_(flat.storage(), flat.storage_offset() + offset, sizes, strides);
  return view;
}

// Whether a tensor of these sizes and strides fills its memory without gaps or overlaps.
bool fill_memory(at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (strides.size() != sizes.size() ||
      std::ranges::any_of(strides, [](std::int64_t stride) { return stride < 0; })) {
    return false;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1) {
      dimensions.emplace_back(strides[d], sizes[d]);
    }
  }
  std::ranges::sort(dimensions);
  std::int64_t expected = 1;
  return std::ranges::all_of(dimensions, [&](const auto& dimension) {
    return dimension.first == std::exchange(expected, expected * dimension.second);
  });
}

}  // namespace

ParameterBlock::ParameterBlock(std::vector<ParameterRef> parameters, bool trained, int moments)
    : parameters_(std::move(parameters)), offsets_{0} {
  const at::NoGradGuard no_grad;
  for (const ParameterRef& p : parameters_) {
    ABT_ASSERT(p.tensor->defined(), "{} has no values", p.name);
    offsets_.push_back(offsets_.back() + p.tensor->numel());
  }
  const std::int64_t total = offsets_.back();
  const auto options = parameters_.empty()
                           ? at::TensorOptions().dtype(at::kFloat)
                           : parameters_.front().tensor->options().requires_grad(false);
  values_ = at::empty({total}, options);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& tensor = *parameters_[i].tensor;
    at::Tensor source = tensor.detach();
    if (!source.is_non_overlapping_and_dense()) {
      source = source.contiguous();
    }
    at::Tensor view = view_of(values_, offsets_[i], source.sizes(), source.strides());
    view.copy_(source);
    strides_.push_back(view.strides().vec());
    all_.values.push_back(values_.narrow(0, offsets_[i], view.numel()));
    tensor = view;
    tensor.set_requires_grad(trained);
  }
  if (!trained) {
    return;
  }
  // Allocated only here, after the tensors' old memory has been freed.
  gradients_ = at::zeros({total}, options);
  moments_ = at::zeros({moments * total}, options);
  steps_ = at::zeros({std::ssize(parameters_)}, options);
  all_.moments.resize(static_cast<std::size_t>(moments));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& tensor = *parameters_[i].tensor;
    all_.gradients.push_back(gradients_.narrow(0, offsets_[i], tensor.numel()));
    for (int k = 0; k < moments; ++k) {
      all_.moments[static_cast<std::size_t>(k)].push_back(
          moments_.narrow(0, k * total + offsets_[i], tensor.numel()));
    }
    all_.steps.push_back(steps_.select(0, static_cast<std::int64_t>(i)));
    tensor.mutable_grad() = view_of(gradients_, offsets_[i], tensor.sizes(), tensor.strides());
    add_to_slice(i);
  }
}

double Slice::decay(const OptimizerOptions& options) const {
  return (decays || options.decay_all ? options.weight_decay : 0) * (halves_decay ? 0.5 : 1);
}

void ParameterBlock::add_to_slice(std::size_t i) {
  const ParameterRef& p = parameters_[i];
  const bool is_matrix = (p.tensor->dim() == 2 || p.tensor->dim() == 4) && p.tensor->numel() > 0;
  auto slice = std::ranges::find_if(slices_, [&](const Slice& s) {
    return s.decays == p.decays && s.is_factor == p.is_factor && s.is_matrix == is_matrix &&
           s.halves_decay == p.halves_decay;
  });
  if (slice == slices_.end()) {
    slice = slices_.insert(
        slice, {.decays = p.decays,
                .is_factor = p.is_factor,
                .is_matrix = is_matrix,
                .halves_decay = p.halves_decay});
    slice->moments.resize(all_.moments.size());
  }
  slice->indices.push_back(i);
  slice->values.push_back(all_.values[i]);
  slice->gradients.push_back(all_.gradients[i]);
  slice->steps.push_back(all_.steps[i]);
  for (std::size_t k = 0; k < all_.moments.size(); ++k) {
    slice->moments[k].push_back(all_.moments[k][i]);
  }
}

void ParameterBlock::zero_gradients() {
  const at::NoGradGuard no_grad;
  if (gradients_.defined()) {
    gradients_.zero_();
  }
}

void ParameterBlock::drop_gradients() {
  gradients_.reset();
  slices_.clear();
  all_.gradients.clear();
  for (const ParameterRef& p : parameters_) {
    p.tensor->mutable_grad().reset();
  }
}

void ParameterBlock::lay_out(std::size_t index, const std::vector<std::int64_t>& strides) {
  at::Tensor& tensor = *parameters_[index].tensor;
  const std::vector<std::int64_t> sizes = tensor.sizes().vec();
  tensor = view_of(values_, offsets_[index], sizes, strides);
  strides_[index] = strides;
  if (gradients_.defined()) {
    tensor.set_requires_grad(true);
    tensor.mutable_grad() = view_of(gradients_, offsets_[index], sizes, strides);
  }
}

void ParameterBlock::archive(
    state::Archive& archive, const std::string& prefix, state::Owner owner) {
  const at::NoGradGuard no_grad;
  archive.tensor(prefix + "values", values_, owner);
  if (gradients_.defined()) {
    archive.tensor(prefix + "moments", moments_, owner);
    archive.tensor(prefix + "steps", steps_, owner);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto strides = parameters_[i].tensor->strides().vec();
    archive.value(formatted("{}strides.{}", prefix, parameters_[i].name), strides);
    if (archive.is_loading() && strides != parameters_[i].tensor->strides()) {
      ABT_CHECK(
          fill_memory(parameters_[i].tensor->sizes(), strides), DamagedData,
          "the checkpoint's strides for '{}' do not match its shape", parameters_[i].name);
      lay_out(i, strides);
    }
  }
}

std::size_t ParameterBlock::index_of(const std::string& name) const {
  const auto found = std::ranges::find(parameters_, name, &ParameterRef::name);
  ABT_ASSERT(found != parameters_.end(), "{} is not in this block", name);
  return static_cast<std::size_t>(found - parameters_.begin());
}

void ParameterBlock::adopt(const ParameterBlock& old) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < all_.steps.size(); ++i) {
    const auto found = std::ranges::find(old.parameters_, parameters_[i].name, &ParameterRef::name);
    const auto j = static_cast<std::size_t>(found - old.parameters_.begin());
    if (j >= old.all_.steps.size() || parameters_[i].is_factor ||
        old.all_.values[j].sizes() != all_.values[i].sizes()) {
      continue;
    }
    ABT_ASSERT(
        old.strides_[j] == strides_[i], "{} lies in memory in another order than its moments",
        parameters_[i].name);
    all_.steps[i].copy_(old.all_.steps[j]);
    for (std::size_t k = 0; k < all_.moments.size(); ++k) {
      all_.moments[k][i].copy_(old.all_.moments[k][j]);
    }
  }
}

}  // namespace abtrain::optim
