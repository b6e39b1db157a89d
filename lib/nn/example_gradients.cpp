#include "nn/example_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"

namespace abtrain::nn {

namespace {

// Sums are taken in no less than fp32.
at::Tensor wide(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

// A trained tensor in flat vectors.
struct Place {
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;

  at::Tensor in(const at::Tensor& vector) const {
    return vector.as_strided(
        sizes, strides, vector.storage_offset() + offset);
  }
  // In `count` rows from `first` on.
  at::Tensor in(
      const at::Tensor& rows, std::int64_t first, std::int64_t count) const {
    std::vector<std::int64_t> all_sizes = sizes;
    std::vector<std::int64_t> all_strides = strides;
    all_sizes.insert(all_sizes.begin(), count);
    all_strides.insert(all_strides.begin(), rows.stride(0));
    return rows.as_strided(
        all_sizes,
        all_strides,
        rows.storage_offset() + first * rows.stride(0) + offset);
  }
};

// Finds the places of parameters, each once.
class Places {
 public:
  explicit Places(const std::vector<Placed>& trained)
      : trained_(trained), found_(trained.size(), false) {}

  std::optional<Place> find(const at::Tensor& tensor) {
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      const Placed& placed = trained_[i];
      if (tensor.defined() && placed.tensor.is_same(tensor)) {
        ABT_ASSERT(!found_[i], "parameter ", i, " is used twice in a pass");
        found_[i] = true;
        return Place{
            tensor.sizes().vec(), tensor.strides().vec(), placed.offset};
      }
    }
    return {};
  }
  void expect_all_found() const {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      ABT_ASSERT(found_[i], "parameter ", i, " is not on the tape");
    }
  }

 private:
  const std::vector<Placed>& trained_;
  std::vector<bool> found_;
};

}  // namespace

// A linear map at each of an example's T positions: outputs = W inputs + b with
// W: O x K. A convolution's K are its kernel's rows, columns and channels.
class ExampleGradients::Map {
 public:
  Map(const LinearMap& map,
      std::optional<Place> weight,
      std::optional<Place> bias)
      : weight_(std::move(weight)),
        bias_(std::move(bias)),
        stride_(map.stride),
        padding_(map.padding) {
    ABT_ASSERT(map.gradient->defined(), "the backward pass left a map out");
    const at::Tensor gradient = wide(*map.gradient);
    if (gradient.dim() == 4) {
      output_sides_ = gradient.sizes().slice(2).vec();
      gradient_ =
          gradient.permute({0, 2, 3, 1}).contiguous().flatten(1, 2);
    } else {
      gradient_ = gradient.contiguous().view(
          {map.examples, -1, gradient.size(1)});
    }
    if (!weight_) {
      return;
    }
    const at::Tensor input = wide(map.input);
    is_conv_ = gradient.dim() == 4;
    has_equal_pixels_ = !is_conv_ && weight_->sizes.size() == 4;
    input_ = is_conv_
        ? input.contiguous(at::MemoryFormat::ChannelsLast)
        : input.contiguous().view({map.examples, -1, input.size(-1)});
  }

  at::TensorOptions options() const {
    return gradient_.options();
  }

  void add_products(const at::Tensor& sums, std::int64_t scratch) const {
    if (bias_) {
      const at::Tensor of_bias = gradient_.sum(1);
      sums.addmm_(of_bias, of_bias.t());
    }
    if (!weight_) {
      return;
    }
    if (takes_pairs_of_positions(scratch)) {
      sums.add_(products_by_positions(), has_equal_pixels_ ? pixels() : 1);
      return;
    }
    const double channel = element_size() * static_cast<double>(pixels()) *
        static_cast<double>(examples() * (positions() + outputs()));
    const std::int64_t step = pieces(channel, scratch);
    const std::int64_t dim = is_conv_ ? 1 : 2;
    const at::Tensor gradients = gradient_.transpose(1, 2);
    for (std::int64_t c = 0; c < input_.size(dim); c += step) {
      const std::int64_t count = std::min(step, input_.size(dim) - c);
      const at::Tensor built =
          at::bmm(gradients, unfolded(input_.narrow(dim, c, count))).flatten(1);
      sums.addmm_(built, built.t());
    }
  }

  void add_products(const at::Tensor& sums, const at::Tensor& vector) const {
    if (bias_) {
      sums.addmv_(gradient_.sum(1), bias_->in(vector));
    }
    if (weight_) {
      const at::Tensor outputs = outputs_of(weight_->in(vector));
      sums.add_((outputs * gradient_).sum({1, 2}));
    }
  }

  void add(const at::Tensor& vector, const at::Tensor& coefficients) const {
    const at::Tensor scaled =
        (gradient_ * coefficients.view({-1, 1, 1})).flatten(0, 1);
    if (bias_) {
      bias_->in(vector).add_(scaled.sum(0));
    }
    if (!weight_) {
      return;
    }
    const at::Tensor sum = weight_->in(vector);
    if (is_conv_) {
      sum.add_(std::get<1>(at::convolution_backward(
          scaled.view({examples(), output_sides_[0], output_sides_[1], -1})
              .permute({0, 3, 1, 2}),
          input_,
          sum,
          {},
          at::IntArrayRef({stride_, stride_}),
          at::IntArrayRef({padding_, padding_}),
          at::IntArrayRef({1, 1}),
          false,
          at::IntArrayRef({0, 0}),
          1,
          {false, true, false})));
      return;
    }
    const at::Tensor inputs = input_.flatten(0, 1);
    if (has_equal_pixels_) {
      sum.add_(as_weight(at::mm(scaled.t(), inputs)));
    } else {
      sum.addmm_(scaled.t(), inputs);
    }
  }

  void differences(const at::Tensor& rows, std::int64_t scratch) const {
    const std::int64_t pairs = examples() / 2;
    const at::Tensor gradients =
        gradient_.clone().view({pairs, 2, positions(), outputs()});
    gradients.select(1, 1).neg_();
    if (bias_) {
      bias_->in(rows, 0, pairs).copy_(gradients.sum({1, 2}));
    }
    if (!weight_) {
      return;
    }
    const at::Tensor columns = gradients.flatten(1, 2).transpose(1, 2);
    const std::int64_t width = input_width();
    const double pair = element_size() * static_cast<double>(width) *
        static_cast<double>(2 * positions() + outputs());
    const std::int64_t step = pieces(pair, scratch);
    for (std::int64_t k = 0; k < pairs; k += step) {
      const std::int64_t count = std::min(step, pairs - k);
      const at::Tensor inputs = unfolded(input_.narrow(0, 2 * k, 2 * count))
                                    .view({count, 2 * positions(), width});
      at::Tensor to = weight_->in(rows, k, count);
      if (is_conv_ || has_equal_pixels_) {
        to.copy_(as_weight(at::bmm(columns.narrow(0, k, count), inputs)));
      } else {
        at::bmm_out(to, columns.narrow(0, k, count), inputs);
      }
    }
  }

 private:
  std::int64_t examples() const {
    return gradient_.size(0);
  }
  std::int64_t positions() const {
    return gradient_.size(1);
  }
  std::int64_t outputs() const {
    return gradient_.size(2);
  }
  // Of the kernel.
  std::int64_t pixels() const {
    return weight_->sizes.size() == 4 ? weight_->sizes[2] * weight_->sizes[3]
                                      : 1;
  }
  // K.
  std::int64_t input_width() const {
    return is_conv_ ? input_.size(1) * pixels() : input_.size(2);
  }
  double element_size() const {
    return static_cast<double>(gradient_.element_size());
  }
  // How many of a size make up the scratch.
  static std::int64_t pieces(double size, std::int64_t scratch) {
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(static_cast<double>(scratch) / size));
  }

  // B x T x K, of some examples' input or of some channels.
  at::Tensor unfolded(const at::Tensor& input) const {
    if (!is_conv_) {
      return input;
    }
    at::Tensor x = input;
    if (padding_ > 0) {
      x = at::constant_pad_nd(x, {padding_, padding_, padding_, padding_});
    }
    return x.unfold(2, weight_->sizes[2], stride_)
        .unfold(3, weight_->sizes[3], stride_)
        .permute({0, 2, 3, 4, 5, 1})
        .reshape({x.size(0), positions(), pixels() * x.size(1)});
  }

  // (... x) O x K to the weight's sizes, or to what spreads over them.
  at::Tensor as_weight(const at::Tensor& matrix) const {
    if (has_equal_pixels_) {
      return matrix.unsqueeze(-1).unsqueeze(-1);
    }
    return matrix
        .unflatten(
            -1, {weight_->sizes[2], weight_->sizes[3], weight_->sizes[1]})
        .movedim(-1, -3);
  }

  // The map with this weight and no bias, B x T x O.
  at::Tensor outputs_of(const at::Tensor& weight) const {
    if (is_conv_) {
      return at::conv2d(
                 input_,
                 weight,
                 {},
                 at::IntArrayRef({stride_, stride_}),
                 at::IntArrayRef({padding_, padding_}))
          .permute({0, 2, 3, 1})
          .flatten(1, 2);
    }
    return at::matmul(
        input_, (has_equal_pixels_ ? weight.sum({2, 3}) : weight).t());
  }

  // Whether the inner products of all positions cost less than building the
  // gradients, and fit.
  bool takes_pairs_of_positions(std::int64_t scratch) const {
    const auto b = static_cast<double>(examples());
    const auto t = static_cast<double>(positions());
    const auto o = static_cast<double>(outputs());
    const auto k = static_cast<double>(input_width());
    const double bytes =
        element_size() * b * t * (2 * b * t + (is_conv_ ? k : 0));
    return positions() == 1 ||
        (b * t * t * (k + o) < (t + b) * k * o &&
         bytes <= static_cast<double>(scratch));
  }

  at::Tensor products_by_positions() const {
    const at::Tensor inputs = unfolded(input_).flatten(0, 1);
    const at::Tensor gradients = gradient_.flatten(0, 1);
    const at::Tensor all =
        at::mm(inputs, inputs.t()).mul_(at::mm(gradients, gradients.t()));
    return all.view({examples(), positions(), examples(), positions()})
        .sum({1, 3});
  }

  std::optional<Place> weight_, bias_;
  at::Tensor input_;     // B x T x K; of a convolution B x I x H x W
  at::Tensor gradient_;  // of the outputs, B x T x O
  bool is_conv_ = false;
  // A convolution of images that are one colour each: W, O x I, is the sum of
  // the kernel's pixels, which have equal gradients.
  bool has_equal_pixels_ = false;
  std::int64_t stride_, padding_;
  std::vector<std::int64_t> output_sides_;  // of a convolution
};

ExampleGradients::ExampleGradients(
    const Tape& tape, const std::vector<Placed>& trained, std::int64_t scratch)
    : scratch_(scratch) {
  const at::NoGradGuard no_grad;
  Places places(trained);
  for (const LinearMap& map : tape.maps()) {
    auto weight = places.find(map.weight);
    auto bias = places.find(map.bias);
    if (weight || bias) {
      ABT_ASSERT(
          maps_.empty() || map.examples == examples_,
          "maps of ",
          examples_,
          " and ",
          map.examples,
          " examples on a tape");
      examples_ = map.examples;
      maps_.emplace_back(map, std::move(weight), std::move(bias));
    }
  }
  places.expect_all_found();
  ABT_ASSERT(!maps_.empty(), "gradients of no parameters");
}

ExampleGradients::~ExampleGradients() = default;

at::Tensor ExampleGradients::zeros(at::IntArrayRef sizes) const {
  return at::zeros(sizes, maps_.front().options());
}

at::Tensor ExampleGradients::products() const {
  const at::NoGradGuard no_grad;
  at::Tensor sums = zeros({examples_, examples_});
  for (const Map& map : maps_) {
    map.add_products(sums, scratch_);
  }
  return sums;
}

at::Tensor ExampleGradients::products(const at::Tensor& vector) const {
  const at::NoGradGuard no_grad;
  at::Tensor sums = zeros({examples_});
  for (const Map& map : maps_) {
    map.add_products(sums, vector);
  }
  return sums;
}

void ExampleGradients::add(
    const at::Tensor& vector, const at::Tensor& coefficients) const {
  const at::NoGradGuard no_grad;
  ABT_ASSERT(
      coefficients.numel() == examples_,
      coefficients.numel(),
      " coefficients for ",
      examples_,
      " examples");
  for (const Map& map : maps_) {
    map.add(vector, coefficients);
  }
}

void ExampleGradients::differences(const at::Tensor& rows) const {
  const at::NoGradGuard no_grad;
  ABT_ASSERT(
      examples_ % 2 == 0 && rows.dim() == 2 && rows.size(0) == examples_ / 2 &&
          rows.stride(1) == 1,
      "differences of ",
      examples_,
      " examples as ",
      rows.sizes());
  for (const Map& map : maps_) {
    map.differences(rows, scratch_);
  }
}

bool has_example_gradients(const Model& model) {
  std::set<std::string> biases;
  for (const NamedWeight& w : model.weights()) {
    if (w.weight->is_fixed()) {
      return false;
    }
    biases.insert(w.layer + ".bias");
  }
  return std::ranges::all_of(
      model.parameters(),
      [&](const NamedParameter& p) { return biases.contains(p.name); });
}

bool mixes_examples(const Model& model) {
  return !model.buffers().empty();
}

}  // namespace abtrain::nn
