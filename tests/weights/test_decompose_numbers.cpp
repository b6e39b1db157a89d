// That the report of `abtrain decompose` says what is in the file, in every
// dtype and scale.
#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "decompose_files.h"
#include "error_of.h"
#include "linalg/svd.h"

namespace abtrain::weights {
namespace {

// In its own dtype, F64.
at::Tensor factor_of(const state::SafetensorsFile& file, const std::string& name) {
  const auto stored = std::ranges::find(file.tensors(), name, &state::StoredTensor::name);
  EXPECT_EQ(stored->dtype, "F64");
  return file.load(*stored);
}

using DecomposeNumbers = DecomposeFile;

// What the report says of a file, from the file alone.
TEST_F(DecomposeNumbers, ABudgetsReportIsThatOfTheFile) {
  std::vector<state::NamedTensor> weights;
  for (int i = 0; i < 6; ++i) {
    // Spectra that fall at different rates, so that a search passes through
    // many ranks, and leaves small matrices dense at the end.
    const at::Tensor base = normal({40, 24}, i);
    weights.push_back(
        {"w" + std::to_string(i), (base + 10.0 * i * low_rank(40, 24, 2)).slice(0, 0, 30 + i)});
  }
  input(weights);
  const RankRule rule{.rule = RankRuleName::Budget};
  const std::uint64_t whole = std::filesystem::file_size(folder_.file("in"));
  int dense = 0;
  int cut = 0;
  for (const double share : {0.9, 0.7, 0.5, 0.3}) {
    options_.budget_bytes = static_cast<std::uint64_t>(share * static_cast<double>(whole));
    options_.dtype = share < 0.6 ? "bf16" : "";
    const DecomposeReport report = run(rule);
    const auto back = merged(options_.output);
    double lost = 0;
    double all = 0;
    for (const state::NamedTensor& w : weights) {
      const DecomposedTensor& got = row(report, w.name);
      const at::Tensor flat = w.tensor.to(at::kDouble);
      const double norm = flat.norm().item<double>();
      const double error = (back.at(w.name).to(at::kDouble) - flat).norm().item<double>();
      EXPECT_NEAR(got.norm, norm, 1e-5 * norm);
      lost += error * error;
      all += norm * norm;
      if (got.rank > 0) {
        ++cut;
        EXPECT_NEAR(*got.error, error / norm, 1e-6);
        EXPECT_EQ(got.reason, "");
        EXPECT_EQ(got.dtype, share < 0.6 ? "BF16" : "F32");
        continue;
      }
      ++dense;
      EXPECT_EQ(error, 0);
      EXPECT_EQ(got.energy, 1) << w.name;
      EXPECT_EQ(got.truncation_error, 0) << w.name;
      EXPECT_EQ(got.dtype, "F32");
      EXPECT_EQ(got.bytes_after, got.bytes_before);
      EXPECT_EQ(got.reason, "it fits the budget as it is");
    }
    EXPECT_NEAR(
        decompose_json(report)["totals"]["error"].get<double>(), std::sqrt(lost / all), 1e-6);
  }
  EXPECT_GT(dense, 2);
  EXPECT_GT(cut, 2);
}

// Beside LAPACK, and at scales whose squares no double can hold.
TEST_F(DecomposeNumbers, DoublesStayDoublesAtAnyScale) {
  const at::Tensor w =
      at::randn({30, 20}, at::detail::createCPUGenerator(3), at::TensorOptions(at::kDouble));
  const at::Tensor s = linalg::gesdd(w).s;
  const at::Tensor low = at::matmul(w.slice(1, 0, 4), w.slice(0, 0, 4));
  std::vector<state::NamedTensor> weights = {
      {"w1", w},
      {"w1e200", 1e200 * w},
      {"w1e300", 1e300 * w.t().contiguous()},
      {"w1e-170", 1e-170 * w},
      {"w1e-300", 1e-300 * w},
      {"low", low}};
  write_weights(folder_.file("in"), weights);
  const RankRule budget{.rule = RankRuleName::Budget, .ratio = 1.5};
  for (const RankRule& rule : {fixed_rank(5), fixed_rank(11), budget}) {
    const DecomposeReport report = run(rule);
    const state::SafetensorsFile file(options_.output);
    for (const state::NamedTensor& each : weights) {
      const DecomposedTensor& got = row(report, each.name);
      if (got.rank == 0) {  // as a budget may leave it
        EXPECT_EQ(rule.rule, RankRuleName::Budget) << each.name;
        continue;
      }
      const at::Tensor a = factor_of(file, each.name + ".A");
      const at::Tensor b = factor_of(file, each.name + ".B");
      EXPECT_TRUE(at::isfinite(a).all().item<bool>()) << each.name;
      EXPECT_TRUE(at::isfinite(b).all().item<bool>()) << each.name;
      // In a scale where squares are finite.
      const double scale = each.tensor.abs().max().item<double>();
      const double half = std::sqrt(scale);
      const at::Tensor product = at::matmul(a / half, b / half);
      const at::Tensor want = each.tensor / scale;
      const at::Tensor difference =
          (product.size(0) == want.size(0) ? product : product.t()) - want;
      const double really = difference.norm().item<double>() / want.norm().item<double>();
      EXPECT_NEAR(*got.error, really, 1e-13) << each.name;
      EXPECT_NEAR(got.truncation_error, *got.error, 1e-13) << each.name;
      if (each.name != "low") {
        const double tail = s.slice(0, got.rank).norm().item<double>() / s.norm().item<double>();
        EXPECT_NEAR(really, tail, 1e-13) << each.name;
        EXPECT_GT(tail, 0.1);
      } else {
        // Far below what fp32 could say.
        EXPECT_LT(*row(run(fixed_rank(4)), "low").error, 1e-14);
        run(rule);
      }
    }
    const double total = decompose_json(report)["totals"]["error"].get<double>();
    EXPECT_TRUE(std::isfinite(total));
    EXPECT_NEAR(total, row(report, "w1e300").error.value_or(0), 1e-6);
  }
  // What a smaller dtype cannot hold is refused, too large or too small.
  for (const char* name : {"w1e200", "w1e-170"}) {
    options_.only = {name};
    options_.dtype = "fp32";
    expect_error(
        [&] { run(fixed_rank(5)); }, ErrorKind::Diverged,
        {"its factors are beyond what F32 can hold"});
  }
  at::Tensor bad = w.clone();
  bad[3][4] = std::numeric_limits<double>::infinity();
  write_weights(folder_.file("in"), {{"bad", bad}});
  options_ = {};
  expect_error([&] { run(fixed_rank(5)); }, ErrorKind::Diverged, {"'bad'"});
}

}  // namespace
}  // namespace abtrain::weights
