// Weight matrices of well-known models, with typical spectra.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace abtrain::bench {

struct Shape {
  std::int64_t m, n, fan;
};

// Rows and columns as the trainer sees them, with m >= n.
inline Shape conv_shape(std::int64_t out, std::int64_t in, std::int64_t k) {
  const auto columns = in * k * k;
  return {std::max(out, columns), std::min(out, columns), out * k * k};
}

inline std::vector<Shape> resnet50() {
  std::vector<Shape> shapes;
  const auto conv = [&](std::int64_t out, std::int64_t in, std::int64_t k) {
    shapes.push_back(conv_shape(out, in, k));
  };
  conv(64, 3, 7);
  const struct {
    std::int64_t blocks, width, in;
  } stages[] = {{3, 64, 64}, {4, 128, 256}, {6, 256, 512}, {3, 512, 1024}};
  for (const auto& stage : stages) {
    auto in = stage.in;
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      conv(stage.width, in, 1);
      conv(stage.width, stage.width, 3);
      conv(4 * stage.width, stage.width, 1);
      if (block == 0) {
        conv(4 * stage.width, in, 1);
      }
      in = 4 * stage.width;
    }
  }
  conv(1000, 2048, 1);
  return shapes;
}

// The layers of timm's vgg16 (32 x 32 input) that AB-training may factor: all
// but the first convolution and the classifier.
inline std::vector<Shape> vgg16() {
  std::vector<Shape> shapes;
  const auto conv = [&](std::int64_t out, std::int64_t in, std::int64_t k) {
    shapes.push_back(conv_shape(out, in, k));
  };
  std::int64_t in = 64;
  for (const std::int64_t out : {64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512}) {
    conv(out, in, 3);
    in = out;
  }
  conv(4096, 512, 7);
  conv(4096, 4096, 1);
  return shapes;
}

inline at::Tensor kaiming(const Shape& s, at::Device device = at::kCPU) {
  return at::randn({s.m, s.n}, device).mul(std::sqrt(2.0 / s.fan));
}

// The singular values fall as 1 / i, as they do after training: a few strong
// directions over a long tail.
inline at::Tensor trained(const Shape& s, at::Device device = at::kCPU) {
  const auto left = std::get<0>(at::linalg_qr(at::randn({s.m, s.n}, device)));
  const auto right = std::get<0>(at::linalg_qr(at::randn({s.n, s.n}, device)));
  return at::mm(left.mul(at::arange(1, s.n + 1, device).pow(-1.0)), right.t());
}

// All singular values are 1, as with `init: orthogonal`.
inline at::Tensor orthogonal(const Shape& s, at::Device device) {
  return std::get<0>(at::linalg_qr(at::randn({s.m, s.n}, device)));
}

}  // namespace abtrain::bench
