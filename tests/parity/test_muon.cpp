// Steps of `optimizer: muon` beside torch.optim.Muon's in float32, from the
// same values with the same gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "optim/optimizer.h"
#include "python.h"
#include "temp_folder.h"

namespace abtrain {
namespace {

struct MuonCase {
  const char* name;
  int steps;
  optim::MuonScale scale;
  bool nesterov;
  double weight_decay;
};

class MuonParity : public ::testing::TestWithParam<MuonCase> {};

TEST_P(MuonParity, StepsEqualThoseOfPyTorch) {
  const MuonCase c = GetParam();
  const at::NoGradGuard no_grad;
  // Tall, wide, square, a row, convolutions.
  const std::vector<std::vector<std::int64_t>> shapes = {{40, 12}, {12, 40},      {20, 20},
                                                         {1, 30},  {16, 3, 3, 3}, {4, 24, 3, 3}};
  const auto drawn = [](at::IntArrayRef sizes, std::uint64_t seed) {
    return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat);
  };
  std::vector<at::Tensor> tensors;
  std::vector<optim::ParameterRef> refs;
  std::vector<std::string> arguments;
  tensors.reserve(shapes.size());
  for (const auto& shape : shapes) {
    tensors.push_back(drawn(shape, 1 + tensors.size()));
    refs.push_back({formatted("w{}", refs.size()), &tensors.back()});
    std::string text;
    for (const std::int64_t size : shape) {
      text += (text.empty() ? "" : "x") + std::to_string(size);
    }
    arguments.push_back(text);
  }
  optim::OptimizerOptions options;
  options.name = "muon";
  options.lr = 0.02;
  options.momentum = 0.95;
  options.nesterov = c.nesterov;
  options.scale = c.scale;
  options.weight_decay = c.weight_decay;
  const auto optimizer = optim::make_optimizer(options);
  optim::ParameterBlock block(refs, true, optimizer->moments());
  optim::Rates rates(at::kCPU);
  rates.set(options.lr, 1);

  const TempFolder folder;
  folder.add("before.f32", testing::bytes_of(block.values()));
  for (int t = 0; t < c.steps; ++t) {
    block.gradients().copy_(drawn({block.numel()}, 100 + static_cast<std::uint64_t>(t)));
    folder.add(formatted("gradient_{}.f32", t), testing::bytes_of(block.gradients()));
    optimizer->step(block, rates, {});
  }
  folder.add(
      "case.json",
      nlohmann::json({{"lr", options.lr},
                      {"momentum", options.momentum},
                      {"nesterov", c.nesterov},
                      {"weight_decay", c.weight_decay},
                      {"adjust_lr_fn",
                       c.scale == optim::MuonScale::MatchRms ? "match_rms_adamw" : "original"}})
          .dump());
  arguments.insert(arguments.begin(), {folder.path(), std::to_string(c.steps)});
  testing::python("muon.py", arguments);

  const at::Tensor wanted = testing::read_numbers(folder / "after.f32", block.numel());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::int64_t begin = block.offset(i);
    const std::int64_t numel = block.offset(i + 1) - begin;
    EXPECT_LT((block.values() - wanted).narrow(0, begin, numel).abs().max().item<double>(), 1e-5)
        << arguments[i + 2];
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, MuonParity,
    ::testing::Values(
        MuonCase{"one_step", 1, optim::MuonScale::Spectral, true, 0},
        MuonCase{"match_rms", 1, optim::MuonScale::MatchRms, true, 0.1},
        MuonCase{"heavy_ball", 3, optim::MuonScale::Spectral, false, 0.1},
        MuonCase{"steps", 10, optim::MuonScale::MatchRms, true, 0.1}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace abtrain
