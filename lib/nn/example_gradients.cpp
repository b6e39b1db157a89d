#include "nn/example_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "device/tensor_text.h"
#include "nn/exported/graph.h"

namespace abtrain::nn {

namespace {

// Converts to a type in which sums are accumulated: at least fp32.
at::Tensor wide(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

// The part of a flat vector that belongs to the parameter.
at::Tensor view_in(const Placed& placed, const at::Tensor& vector) {
  return vector.as_strided(
      placed.tensor.sizes(), placed.tensor.strides(), vector.storage_offset() + placed.offset);
}

// The part of rows first .. first + count - 1 that belongs to the parameter.
at::Tensor view_in(
    const Placed& placed, const at::Tensor& rows, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> sizes = placed.tensor.sizes().vec();
  std::vector<std::int64_t> strides = placed.tensor.strides().vec();
  sizes.insert(sizes.begin(), count);
  strides.insert(strides.begin(), rows.stride(0));
  return rows.as_strided(
      sizes, strides, rows.storage_offset() + first * rows.stride(0) + placed.offset);
}

// One linear map of a tape, and its contribution to the inner products and sums of per-example
// gradients. Its public methods compute the map's share of UnitGradients' methods of the same
// names.
//
// At each of an example's T positions, outputs = W inputs + b, with W: O x K. A convolution's K
// inputs are its channels times the kernel's pixels, and its positions are the output's pixels.
// Tokens are positions, too.
class ExampleMap {
 public:
  // Works in pieces of at most `scratch` bytes. Subtracts the bytes that it keeps from `budget`.
  ExampleMap(
      const LinearMap& map, std::optional<Placed> weight, std::optional<Placed> bias,
      std::int64_t scratch, std::int64_t& budget)
      : weight_(std::move(weight)),
        bias_(std::move(bias)),
        stride_(map.stride),
        padding_(map.padding),
        scratch_(scratch) {
    ABT_ASSERT(map.gradient->defined(), "the backward pass skipped a map");
    const at::Tensor gradient = wide(*map.gradient);
    if (gradient.dim() == 4) {
      output_sides_ = gradient.sizes().slice(2).vec();
      gradient_ = gradient.permute({0, 2, 3, 1}).contiguous().flatten(1, 2);
    } else {
      gradient_ = gradient.contiguous().view({map.examples, -1, gradient.size(1)});
    }
    if (!weight_) {
      return;
    }
    const at::Tensor input = wide(map.input);
    is_conv_ = gradient.dim() == 4;
    has_equal_pixels_ = !is_conv_ && weight_->tensor.dim() == 4;
    input_ = is_conv_ ? input.contiguous(at::MemoryFormat::ChannelsLast)
                      : input.contiguous().view({map.examples, -1, input.size(-1)});
    way_ = choose(budget);
    if (way_ == Way::Kept) {
      kept_ = built();
      budget -= bytes_to_keep();
    }
  }

  at::TensorOptions options() const {
    return gradient_.options();
  }

  void add_products(const at::Tensor& sums) const {
    if (bias_) {
      const at::Tensor of_bias = gradient_.sum(1);
      sums.addmm_(of_bias, of_bias.t());
    }
    if (!weight_) {
      return;
    }
    if (way_ == Way::Positions) {
      sums.add_(weight_products_by_positions(), has_equal_pixels_ ? pixels() : 1);
    } else if (way_ == Way::Kept) {
      const at::Tensor rows = kept_.flatten(1);
      sums.addmm_(rows, rows.t());
    } else {
      add_weight_products_by_channels(sums);
    }
  }

  void add_products(const at::Tensor& sums, const at::Tensor& vector) const {
    if (bias_) {
      sums.addmv_(gradient_.sum(1), view_in(*bias_, vector));
    }
    if (!weight_) {
      return;
    }
    const at::Tensor weight = view_in(*weight_, vector);
    if (way_ == Way::Kept) {
      sums.addmv_(kept_.flatten(1), weight.flatten());
    } else {
      sums.add_((outputs_of(weight) * gradient_).sum({1, 2}));
    }
  }

  void add(const at::Tensor& vector, const at::Tensor& coefficients) const {
    if (bias_) {
      view_in(*bias_, vector).addmv_(gradient_.sum(1).t(), coefficients);
    }
    if (!weight_) {
      return;
    }
    const at::Tensor weight = view_in(*weight_, vector);
    if (way_ == Way::Kept) {
      const at::Tensor sum = at::matmul(coefficients, kept_.flatten(1));
      weight.add_(as_weight(sum.view({outputs(), input_width()})));
    } else {
      add_to_weight(weight, gradient_ * coefficients.view({-1, 1, 1}));
    }
  }

  void differences(const at::Tensor& rows) const {
    const std::int64_t pairs = examples() / 2;
    const at::Tensor gradients = gradient_.clone().view({pairs, 2, positions(), outputs()});
    gradients.select(1, 1).neg_();
    if (bias_) {
      view_in(*bias_, rows, 0, pairs).copy_(gradients.sum({1, 2}));
    }
    if (!weight_) {
      return;
    }
    if (way_ == Way::Kept) {
      const at::Tensor both = kept_.unflatten(0, {pairs, 2});
      view_in(*weight_, rows, 0, pairs).copy_(as_weight(both.select(1, 0) - both.select(1, 1)));
      return;
    }
    const at::Tensor columns = gradients.flatten(1, 2).transpose(1, 2);
    const std::int64_t width = input_width();
    const std::int64_t step = pieces(width * (2 * positions() + outputs()));
    for (std::int64_t k = 0; k < pairs; k += step) {
      const std::int64_t count = std::min(step, pairs - k);
      const at::Tensor inputs =
          unfolded(input_.narrow(0, 2 * k, 2 * count)).reshape({count, 2 * positions(), width});
      at::Tensor to = view_in(*weight_, rows, k, count);
      if (is_conv_ || has_equal_pixels_) {
        to.copy_(as_weight(at::bmm(columns.narrow(0, k, count), inputs)));
      } else {
        at::bmm_out(to, columns.narrow(0, k, count), inputs);
      }
    }
  }

 private:
  // How to multiply the examples' gradients of the weight with each other. Positions: by inner
  // products of inputs and of output gradients, for all pairs of positions. Kept: all gradients are
  // computed once and kept. Channels: they are computed a few channels at a time.
  enum class Way { Positions, Kept, Channels };

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
  // The number of pieces of `numbers` numbers that fit into the scratch memory, at least one.
  std::int64_t pieces(std::int64_t numbers) const {
    return std::max<std::int64_t>(1, scratch_ / (numbers * gradient_.element_size()));
  }

  // Compares the multiplications of each way, divided by B. Kept gradients save the two passes of
  // outputs_of and add_to_weight.
  Way choose(std::int64_t budget) const {
    const auto b = static_cast<double>(examples());
    const auto t = static_cast<double>(positions());
    const auto o = static_cast<double>(outputs());
    const auto k = static_cast<double>(input_width());
    const bool can_keep = bytes_to_keep() <= budget;
    const auto element = static_cast<double>(gradient_.element_size());
    const double bytes = element * b * t * (2 * b * t + (is_conv_ ? k : 0));
    const bool fits = bytes <= static_cast<double>(scratch_);
    const double passes = can_keep ? 2 * t * k * o : 0;
    if (positions() == 1 || (fits && b * t * t * (k + o) + passes < (t + b) * k * o)) {
      return Way::Positions;
    }
    return can_keep ? Way::Kept : Way::Channels;
  }

  // B x T x K, for the input of some examples or of some channels.
  at::Tensor unfolded(const at::Tensor& input) const {
    if (!is_conv_) {
      return input;
    }
    at::Tensor x = input.contiguous();  // NCHW: long contiguous runs even for few channels
    if (padding_ > 0) {
      x = at::constant_pad_nd(x, {padding_, padding_, padding_, padding_});
    }
    return x.unfold(2, weight_->tensor.size(2), stride_)
        .unfold(3, weight_->tensor.size(3), stride_)
        .permute({0, 1, 4, 5, 2, 3})
        .reshape({x.size(0), x.size(1) * pixels(), positions()})
        .transpose(1, 2);
  }

  // Reshapes (... x) O x K to the weight's sizes, or to a tensor that broadcasts to them.
  at::Tensor as_weight(const at::Tensor& matrix) const {
    if (has_equal_pixels_) {
      return matrix.unsqueeze(-1).unsqueeze(-1);
    }
    if (!is_conv_) {
      return matrix;
    }
    return matrix.unflatten(-1, weight_->tensor.sizes().slice(1));
  }

  // The weight's gradients for all examples, B x O x K.
  at::Tensor built() const {
    const at::Tensor columns = gradient_.transpose(1, 2);
    const std::int64_t width = input_width();
    at::Tensor all = at::empty({examples(), outputs(), width}, options());
    const std::int64_t step = pieces(width * positions());
    for (std::int64_t i = 0; i < examples(); i += step) {
      const std::int64_t count = std::min(step, examples() - i);
      at::Tensor to = all.narrow(0, i, count);
      at::bmm_out(to, columns.narrow(0, i, count), unfolded(input_.narrow(0, i, count)));
    }
    return all;
  }

  at::Tensor weight_products_by_positions() const {
    const at::Tensor inputs = unfolded(input_).flatten(0, 1);
    const at::Tensor gradients = gradient_.flatten(0, 1);
    const at::Tensor all = at::mm(inputs, inputs.t()).mul_(at::mm(gradients, gradients.t()));
    return all.view({examples(), positions(), examples(), positions()}).sum({1, 3});
  }

  void add_weight_products_by_channels(const at::Tensor& sums) const {
    const at::Tensor columns = gradient_.transpose(1, 2);
    const std::int64_t dim = is_conv_ ? 1 : 2;
    const std::int64_t step = pieces(examples() * pixels() * (positions() + outputs()));
    for (std::int64_t c = 0; c < input_.size(dim); c += step) {
      const std::int64_t count = std::min(step, input_.size(dim) - c);
      const at::Tensor rows = at::bmm(columns, unfolded(input_.narrow(dim, c, count))).flatten(1);
      sums.addmm_(rows, rows.t());
    }
  }

  // The map's outputs with this weight and no bias, B x T x O.
  at::Tensor outputs_of(const at::Tensor& weight) const {
    if (is_conv_) {
      return at::conv2d(
                 input_, weight, {}, at::IntArrayRef({stride_, stride_}),
                 at::IntArrayRef({padding_, padding_}))
          .permute({0, 2, 3, 1})
          .flatten(1, 2);
    }
    return at::matmul(input_, (has_equal_pixels_ ? weight.sum({2, 3}) : weight).t());
  }

  // Adds to `weight` its gradient for the whole batch, given the output gradients `scaled`.
  void add_to_weight(const at::Tensor& weight, const at::Tensor& scaled) const {
    if (is_conv_) {
      weight.add_(std::get<1>(at::convolution_backward(
          scaled.view({examples(), output_sides_[0], output_sides_[1], -1}).permute({0, 3, 1, 2}),
          input_, weight, {}, at::IntArrayRef({stride_, stride_}),
          at::IntArrayRef({padding_, padding_}), at::IntArrayRef({1, 1}), false,
          at::IntArrayRef({0, 0}), 1, {false, true, false})));
      return;
    }
    const at::Tensor rows = scaled.flatten(0, 1).t();
    const at::Tensor inputs = input_.flatten(0, 1);
    if (has_equal_pixels_) {
      weight.add_(as_weight(at::mm(rows, inputs)));
    } else {
      weight.addmm_(rows, inputs);
    }
  }

  std::optional<Placed> weight_, bias_;
  at::Tensor input_;     // B x T x K; for a convolution B x I x H x W
  at::Tensor gradient_;  // of the outputs, B x T x O
  bool is_conv_ = false;
  // The map convolves images whose pixels are all equal: it multiplies by the kernel's sum over its
  // pixels, O x I, and all these pixels have equal gradients.
  bool has_equal_pixels_ = false;
  std::int64_t stride_, padding_;
  std::vector<std::int64_t> output_sides_;  // for a convolution
  std::int64_t scratch_;
  Way way_ = Way::Positions;
  at::Tensor kept_;  // the weight's gradients, B x O x K
};

// Slice g of `groups` along a dimension.
at::Tensor slice_of(
    const at::Tensor& tensor, std::int64_t dimension, std::int64_t g, std::int64_t groups) {
  const std::int64_t size = tensor.size(dimension) / groups;
  return tensor.narrow(dimension, g * size, size);
}

std::optional<Placed> slice_of(
    const std::optional<Placed>& parameter, std::int64_t g, std::int64_t groups) {
  if (!parameter) {
    return {};
  }
  const at::Tensor slice = slice_of(parameter->tensor, 0, g, groups);
  return Placed{
      slice, parameter->offset + slice.storage_offset() - parameter->tensor.storage_offset()};
}

// The map of group g.
LinearMap slice_of(const LinearMap& map, std::int64_t g) {
  ABT_ASSERT(map.gradient->defined(), "the backward pass skipped a map");
  const std::int64_t features = map.gradient->dim() == 4 ? 1 : -1;
  LinearMap slice = map;
  slice.groups = 1;
  slice.gradient = std::make_shared<at::Tensor>(slice_of(*map.gradient, 1, g, map.groups));
  if (map.input.defined()) {
    slice.input = slice_of(map.input, features, g, map.groups);
  }
  return slice;
}

class ExampleGradients : public UnitGradients {
 public:
  ExampleGradients(const Tape& tape, const std::vector<Placed>& trained, std::int64_t scratch) {
    const at::NoGradGuard no_grad;
    std::vector<bool> found(trained.size(), false);
    const auto place_of = [&](const at::Tensor& tensor) -> std::optional<Placed> {
      for (std::size_t i = 0; i < trained.size(); ++i) {
        if (tensor.defined() && trained[i].tensor.is_same(tensor)) {
          ABT_ASSERT(!found[i], "parameter {} is used twice in a pass", i);
          found[i] = true;
          return trained[i];
        }
      }
      return {};
    };
    std::int64_t budget = scratch;
    for (const LinearMap& map : tape.maps) {
      const auto weight = place_of(map.weight);
      const auto bias = place_of(map.bias);
      if (weight || bias) {
        ABT_ASSERT(
            maps_.empty() || map.examples == examples_, "maps of {} and {} examples on one tape",
            examples_, map.examples);
        examples_ = map.examples;
        for (std::int64_t g = 0; g < map.groups; ++g) {
          maps_.emplace_back(
              slice_of(map, g), slice_of(weight, g, map.groups), slice_of(bias, g, map.groups),
              scratch, budget);
        }
      }
    }
    const auto missing = std::ranges::find(found, false);
    ABT_ASSERT(missing == found.end(), "parameter {} is not on the tape", missing - found.begin());
    ABT_ASSERT(!maps_.empty(), "no trained parameters");
  }

  std::int64_t size() const override {
    return examples_;
  }

  at::Tensor products() const override {
    const at::NoGradGuard no_grad;
    at::Tensor sums = at::zeros({examples_, examples_}, maps_.front().options());
    for (const ExampleMap& map : maps_) {
      map.add_products(sums);
    }
    return sums;
  }

  at::Tensor products(const at::Tensor& vector) const override {
    const at::NoGradGuard no_grad;
    at::Tensor sums = at::zeros({examples_}, maps_.front().options());
    for (const ExampleMap& map : maps_) {
      map.add_products(sums, vector);
    }
    return sums;
  }

  void add(const at::Tensor& vector, const at::Tensor& coefficients) const override {
    const at::NoGradGuard no_grad;
    for (const ExampleMap& map : maps_) {
      map.add(vector, coefficients);
    }
  }

  void differences(const at::Tensor& rows) const override {
    const at::NoGradGuard no_grad;
    ABT_ASSERT(
        examples_ % 2 == 0 && rows.dim() == 2 && rows.size(0) == examples_ / 2 &&
            rows.stride(1) == 1,
        "differences of {} examples as {}", examples_, rows.sizes());
    for (const ExampleMap& map : maps_) {
      map.differences(rows);
    }
  }

 private:
  std::int64_t examples_ = 0;
  std::vector<ExampleMap> maps_;
};

}  // namespace

std::unique_ptr<UnitGradients> example_gradients(
    const Tape& tape, const std::vector<Placed>& trained, std::int64_t scratch) {
  return std::make_unique<ExampleGradients>(tape, trained, scratch);
}

bool has_example_gradients(const Model& model) {
  // The tape does not know dilations, uneven strides, or inputs whose first size is not the batch.
  if (model.file_form().library == kExportedLibrary) {
    return false;
  }
  std::set<std::string> biases;
  for (const NamedWeight& w : model.weights()) {
    if (w.weight->is_fixed()) {
      return false;
    }
    biases.insert(w.layer + ".bias");
  }
  return std::ranges::all_of(
      model.parameters(), [&](const NamedParameter& p) { return biases.contains(p.name); });
}

bool mixes_examples(const Model& model) {
  return model.updates_buffers();
}

}  // namespace abtrain::nn
