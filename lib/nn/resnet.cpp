#include <ATen/TensorOperators.h>

#include <array>

#include "base/error.h"
#include "base/text.h"
#include "nn/families.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace abtrain::nn {

namespace {

std::unique_ptr<Layer> conv(
    std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return conv2d(
      in, out,
      ConvOptions{.kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false});
}

// relu(body(x) + shortcut(x)); without a shortcut, x itself is added.
class Residual : public Layer {
 public:
  Residual(std::unique_ptr<Layer> body, std::unique_ptr<Layer> shortcut)
      : body_(std::move(body)), shortcut_(std::move(shortcut)) {}

  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    at::Tensor out = body_->forward(input, pass);
    out += shortcut_ ? shortcut_->forward(input, pass) : input;
    return out.relu_();
  }
  void list(const std::string& prefix, NamedTensors& tensors) override {
    body_->list(prefix, tensors);
    if (shortcut_) {
      shortcut_->list(prefix + "downsample.", tensors);
    }
  }

 private:
  std::unique_ptr<Layer> body_, shortcut_;
};

std::unique_ptr<Layer> body_of(
    std::int64_t in, std::int64_t channels, std::int64_t out, std::int64_t stride,
    bool bottleneck) {
  auto body = std::make_unique<Sequential>();
  int index = 1;
  const auto add = [&](std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t step,
                       bool last) {
    const std::string number = std::to_string(index++);
    body->add("conv" + number, conv(from, to, kernel, step));
    body->add("bn" + number, batch_norm(to));
    if (!last) {
      body->add("relu" + number, relu());
    }
  };
  if (bottleneck) {
    add(in, channels, 1, 1, false);
    add(channels, channels, 3, stride, false);
    add(channels, out, 1, 1, true);
  } else {
    add(in, channels, 3, stride, false);
    add(channels, out, 3, 1, true);
  }
  return body;
}

}  // namespace

Architecture resnet(
    const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes) {
  const bool bottleneck = sizes[4] > 0;
  const bool cifar =
      options.stem == StemName::Auto ? is_small(shape) : options.stem == StemName::Cifar;
  Widths widths(options);
  std::array<std::int64_t, 4> stage_channels = {};
  for (std::size_t s = 0; s < stage_channels.size(); ++s) {
    stage_channels[s] =
        widths.next({scaled(std::int64_t{64} << s, options), {formatted("layer{}.*", s + 1)}});
  }
  std::int64_t in = stage_channels[0];
  auto layers = std::make_unique<Sequential>();
  layers->add("conv1", cifar ? conv(shape.channels, in, 3) : conv(shape.channels, in, 7, 2));
  layers->add("bn1", batch_norm(in));
  layers->add("relu", relu());
  if (!cifar) {
    layers->add("maxpool", max_pool(3, 2, 1));
  }
  for (std::size_t s = 0; s < 4; ++s) {
    const std::int64_t channels = stage_channels[s];
    const std::int64_t out = bottleneck ? 4 * channels : channels;
    auto stage = std::make_unique<Sequential>();
    for (int b = 0; b < sizes[s]; ++b) {
      const std::int64_t stride = s > 0 && b == 0 ? 2 : 1;
      std::unique_ptr<Sequential> shortcut;
      if (stride > 1 || in != out) {
        shortcut = std::make_unique<Sequential>();
        shortcut->add("0", conv(in, out, 1, stride));
        shortcut->add("1", batch_norm(out));
      }
      stage->add(
          std::to_string(b),
          std::make_unique<Residual>(
              body_of(in, channels, out, stride, bottleneck), std::move(shortcut)));
      in = out;
    }
    layers->add(formatted("layer{}", s + 1), std::move(stage));
  }
  layers->add("avgpool", average_pool());
  add_dropout(*layers, options);
  layers->add("fc", linear(in, shape.classes));
  return {.layers = std::move(layers), .keep_dense = {"conv1", "fc"}, .widths = widths.all()};
}

}  // namespace abtrain::nn
