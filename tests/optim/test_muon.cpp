// Muon's steps against its formulas in float64, for every form that a matrix
// takes in memory.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "device/devices.h"
#include "error_of.h"
#include "optim/optimizer_kind.h"
#include "orthogonalized.h"

namespace abtrain::optim {
namespace {

at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat);
}

OptimizerOptions muon_options() {
  OptimizerOptions o;
  o.name = "muon";
  o.weight_decay = 0.1;
  o.momentum = 0.8;
  o.lr = 0.02;
  o.other_lr = 3e-3;
  return o;
}

// Matrices of all kinds, and what is none.
struct Zoo {
  at::Tensor tall = drawn({7, 4}, 1);
  at::Tensor wide = drawn({4, 7}, 2);
  at::Tensor by_columns = drawn({7, 5}, 3).t();
  at::Tensor conv = drawn({6, 2, 3, 3}, 4);
  at::Tensor channels_last = conv.clone().contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor one_row = drawn({1, 9}, 5);
  at::Tensor bias = drawn({7}, 6);
  at::Tensor embedding = drawn({1, 3, 4}, 7);
  at::Tensor factor = drawn({5, 2}, 8);
  at::Tensor blocks = drawn({6, 4}, 9);
  at::Tensor conv_blocks = drawn({6, 2, 3, 3}, 10).contiguous(at::MemoryFormat::ChannelsLast);

  std::vector<ParameterRef> list() {
    return {
        {"tall", &tall},
        {"bias", &bias, false},
        {"wide", &wide},
        {"by_columns", &by_columns},
        {"conv", &conv},
        {"channels_last", &channels_last},
        {"one_row", &one_row},
        {"embedding", &embedding, false},
        {"factor", &factor, true, true},
        {.name = "blocks", .tensor = &blocks, .is_factor = true, .matrices = 3},
        {.name = "conv_blocks",
         .tensor = &conv_blocks,
         .is_factor = true,
         .matrices = 2,
         .halves_decay = true}};
  }
};

// One parameter in float64.
struct Formula {
  OptimizerOptions o;
  at::Tensor x;
  std::int64_t matrices;  // one below the other
  at::Tensor m = at::zeros_like(x);
  at::Tensor v = at::zeros_like(x);
  int t = 0;

  void matrix(const at::Tensor& g, double rate, double decay) {
    const double rows = static_cast<double>(x.size(0) / matrices);
    const double columns = static_cast<double>(x.numel() / x.size(0));
    m = o.momentum * m + (1 - o.momentum) * g;
    const at::Tensor update = o.nesterov.value_or(true) ? (1 - o.momentum) * g + o.momentum * m : m;
    std::vector<at::Tensor> steps;
    for (const at::Tensor& each : update.reshape({x.size(0), -1}).chunk(matrices)) {
      steps.push_back(testing::orthogonalized(each, o.ns_steps));
    }
    const at::Tensor step = at::cat(steps).reshape(x.sizes());
    const double scale = o.scale == MuonScale::MatchRms ? 0.2 * std::sqrt(std::max(rows, columns))
                                                        : std::sqrt(std::max(1.0, rows / columns));
    x = x * (1 - rate * decay) - rate * scale * step;
  }
  void other(const at::Tensor& g, double rate, double decay) {
    ++t;
    x = x * (1 - rate * decay);
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const at::Tensor mean = m / (1 - std::pow(o.beta1, t));
    const at::Tensor square = v / (1 - std::pow(o.beta2, t));
    x = x - rate * mean / (square.sqrt() + o.eps);
  }
};

struct MuonCase {
  const char* name;
  MuonScale scale;
  std::optional<bool> nesterov;
  bool decay_all;
  double divisor;  // 1: none
  MuonMatrices matrices = MuonMatrices::All;
  std::int64_t ns_steps = 5;
};

class MuonSteps : public ::testing::TestWithParam<MuonCase> {};

TEST_P(MuonSteps, FollowTheFormulasInFloat64) {
  const MuonCase c = GetParam();
  OptimizerOptions o = muon_options();
  o.scale = c.scale;
  o.nesterov = c.nesterov;
  o.decay_all = c.decay_all;
  o.matrices = c.matrices;
  o.ns_steps = c.ns_steps;
  const auto optimizer = make_optimizer(o);
  Zoo zoo;
  ParameterBlock block(zoo.list(), true, optimizer->moments());
  EXPECT_EQ(zoo.by_columns.stride(0), 1);
  EXPECT_EQ(zoo.channels_last.stride(1), 1);
  std::vector<Formula> formulas;
  for (const ParameterRef& p : block.parameters()) {
    formulas.push_back({o, p.tensor->detach().to(at::kDouble), p.matrices});
  }
  Rates rates(at::kCPU);
  for (std::uint64_t step = 0; step < 4; ++step) {
    // The schedule is at a half.
    rates.set(o.lr / 2, 3);
    block.gradients().copy_(drawn({block.numel()}, 50 + step));
    for (std::size_t i = 0; i < formulas.size(); ++i) {
      const ParameterRef& p = block.parameters()[i];
      const at::Tensor g = p.tensor->grad().to(at::kDouble) / c.divisor;
      const double decay =
          (p.decays || c.decay_all ? o.weight_decay : 0) * (p.halves_decay ? 0.5 : 1);
      const bool matrix = c.matrices == MuonMatrices::Factors
                              ? p.is_factor
                              : p.tensor->dim() == 2 || p.tensor->dim() == 4;
      matrix ? formulas[i].matrix(g, o.lr / 2 * (p.is_factor ? 3 : 1), decay)
             : formulas[i].other(g, o.other_lr / 2, decay);
    }
    optimizer->step(
        block, rates, c.divisor == 1 ? at::Tensor() : at::full({}, c.divisor, at::kFloat));
  }
  for (std::size_t i = 0; i < formulas.size(); ++i) {
    const ParameterRef& p = block.parameters()[i];
    EXPECT_LT((p.tensor->detach() - formulas[i].x).abs().max().item<double>(), 5e-6) << p.name;
    EXPECT_EQ(block.steps()[i].item<float>(), 4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, MuonSteps,
    ::testing::Values(
        MuonCase{"auto", MuonScale::MatchRms, {}, false, 1},
        MuonCase{"nesterov", MuonScale::Spectral, true, true, 2.5},
        MuonCase{"heavy_ball", MuonScale::Spectral, false, false, 1},
        MuonCase{"factors", MuonScale::Spectral, {}, false, 2.5, MuonMatrices::Factors},
        MuonCase{"two_steps", MuonScale::MatchRms, {}, false, 1, MuonMatrices::All, 2}),
    [](const auto& test) { return test.param.name; });

TEST(Muon, RefusesAMatrixThatLiesInNoOrder) {
  at::Tensor weight = drawn({3, 4, 2, 2}, 1).permute({1, 0, 2, 3});
  ParameterBlock block({{"weight", &weight}}, true, 2);
  const std::string what = expect_error(
      [&] { make_optimizer(muon_options())->step(block, Rates(at::kCPU), {}); },
      ErrorKind::DamagedData);
  EXPECT_TRUE(what.starts_with("weight: expected a matrix whose rows")) << what;
}

// The moments are all of the state, whatever the optimizer.
TEST(Optimizers, GoOnFromTheirMoments) {
  struct Run {
    Zoo zoo;
    std::unique_ptr<Optimizer> optimizer;
    ParameterBlock block;
    Rates rates{at::kCPU};
    explicit Run(const OptimizerOptions& options) : optimizer(make_optimizer(options)) {
      block = ParameterBlock(zoo.list(), true, optimizer->moments());
    }
    void step(std::uint64_t t) {
      block.gradients().copy_(drawn({block.numel()}, 40 + t));
      rates.set(0.01, 2);
      optimizer->step(block, rates, {});
    }
  };
  for (const std::string& name : optimizer_names()) {
    SCOPED_TRACE(name);
    OptimizerOptions o = muon_options();
    o.name = name;
    o.l1 = 0.05;
    Run whole(o);
    Run first(o);
    for (std::uint64_t t = 0; t < 3; ++t) {
      whole.step(t);
      first.step(t);
    }
    state::State state;
    auto saving = state::Archive::saving(state);
    first.block.archive(saving, "", state::Owner::Worker);
    Run second(o);
    auto loading = state::Archive::loading(state);
    second.block.archive(loading, "", state::Owner::Worker);
    for (std::uint64_t t = 3; t < 6; ++t) {
      whole.step(t);
      second.step(t);
    }
    EXPECT_TRUE(at::equal(whole.block.values(), second.block.values()));
    EXPECT_TRUE(at::equal(whole.block.moments(), second.block.moments()));
  }
}

// In bf16, all matrices of a shape at a time.
TEST(GpuMuon, StepsAreThoseOfTheCpu) {
  if (device::cuda_devices().empty()) {
    GTEST_SKIP() << "no CUDA device here";
  }
  const OptimizerOptions o = muon_options();
  const at::Device gpu{at::kCUDA, 0};
  Zoo here;
  Zoo there;
  at::Tensor twin = drawn({7, 4}, 31);
  at::Tensor twin_there = twin.to(gpu);
  auto list = here.list();
  list.push_back({"twin", &twin});
  auto list_there = there.list();
  for (const ParameterRef& p : list_there) {
    *p.tensor = p.tensor->to(gpu);
  }
  list_there.push_back({"twin", &twin_there});
  ParameterBlock block(std::move(list), true, 2);
  ParameterBlock block_there(std::move(list_there), true, 2);
  const at::Tensor before = block.values().clone();
  const auto cpu_optimizer = make_optimizer(o);
  const auto gpu_optimizer = make_optimizer(o);
  Rates rates(at::kCPU);
  Rates rates_there(gpu);
  const at::Tensor divisor = at::full({}, 1.5, at::kFloat);
  for (std::uint64_t t = 0; t < 3; ++t) {
    rates.set(o.lr, 2);
    rates_there.set(o.lr, 2);
    block.gradients().copy_(drawn({block.numel()}, 60 + t));
    block_there.gradients().copy_(drawn({block.numel()}, 60 + t));
    cpu_optimizer->step(block, rates, divisor);
    gpu_optimizer->step(block_there, rates_there, divisor.to(gpu));
  }
  const at::Tensor way = block.values() - before;
  const at::Tensor apart = block_there.values().cpu() - block.values();
  EXPECT_LT((apart.norm() / way.norm()).item<double>(), 0.1);
}

}  // namespace
}  // namespace abtrain::optim
