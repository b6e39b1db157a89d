#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "decompose_files.h"
#include "error_of.h"
#include "linalg/svd.h"
#include "weights/model_file.h"

namespace abtrain::weights {
namespace {

// Every block by itself, against LAPACK in float64; matrices whose sides no grid divides have none.
TEST_F(DecomposeFile, AGridIsCutBlockByBlock) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const std::vector<state::NamedTensor> weights = {
        {"tall.weight", normal({40, 24}).to(type)},
        {"wide.weight", normal({24, 44}).to(type)},
        {"conv.weight", normal({16, 8, 3, 3}).to(type)},
        {"odd.weight", normal({23, 41}).to(type)}};
    input(weights);
    options_.blocks = 5;
    const DecomposeReport report = run(fixed_rank(8));
    const auto back = merged(options_.output);
    for (const state::NamedTensor& w : weights) {
      const DecomposedTensor& got = row(report, w.name);
      const std::int64_t grid = w.name == "odd.weight" ? 1 : 4;
      EXPECT_EQ(got.grid, grid) << w.name;
      ASSERT_EQ(got.rank, 8) << w.name;
      const at::Tensor flat = w.tensor.reshape({w.tensor.size(0), -1}).to(at::kDouble);
      double tail = 0;
      for (const at::Tensor& rows : flat.chunk(grid, 0)) {
        for (const at::Tensor& block : rows.chunk(grid, 1)) {
          const at::Tensor tall = block.size(0) < block.size(1) ? block.t() : block;
          tail += linalg::gesdd(tall).s.slice(0, 8 / grid).square().sum().item<double>();
        }
      }
      const double norm = flat.norm().item<double>();
      const at::Tensor difference = back.at(w.name).to(at::kDouble) - w.tensor.to(at::kDouble);
      EXPECT_NEAR(difference.norm().item<double>(), std::sqrt(tail), 1e-5 * norm) << w.name;
      EXPECT_NEAR(*got.error, std::sqrt(tail) / norm, 1e-6) << w.name;
      EXPECT_NEAR(got.truncation_error, std::sqrt(tail) / norm, 1e-6) << w.name;
    }
  }
}

// Against LAPACK in float64, by every rule of a single layer.
TEST_F(DecomposeFile, RanksAndErrorsAreThoseOfTheExactDecomposition) {
  const std::vector<state::NamedTensor> weights = {
      {"tall.weight", normal({40, 24})},           {"wide.weight", normal({23, 41})},
      {"square.weight", normal({17, 17})},         {"conv.weight", normal({16, 8, 3, 3})},
      {"conv1d.weight", normal({9, 7, 5})},        {"conv3d.weight", normal({6, 3, 2, 3, 2})},
      {"depthwise.weight", normal({64, 1, 3, 3})}, {"low.weight", low_rank(50, 30, 4)},
      {"tiny.weight", 1e-30 * normal({30, 20})}};
  input(weights);
  const std::vector<RankRule> rules = {
      {.rule = RankRuleName::Energy, .keep = 0.7},
      {.cut = 0.6},
      {.rule = RankRuleName::Ratio, .ratio = 2},
      fixed_rank(1),
      fixed_rank(4)};
  for (const RankRule& rule : rules) {
    const DecomposeReport report = run(rule);
    const auto back = merged(options_.output);
    ASSERT_EQ(report.tensors.size(), weights.size());
    int cut = 0;
    for (const state::NamedTensor& w : weights) {
      const DecomposedTensor& got = row(report, w.name);
      const at::Tensor flat = w.tensor.reshape({w.tensor.size(0), -1}).to(at::kDouble);
      const at::Tensor s = linalg::gesdd(flat.size(0) < flat.size(1) ? flat.t() : flat).s;
      EXPECT_EQ(got.m * got.n, flat.numel());
      const double norm = flat.norm().item<double>();
      const at::Tensor difference = back.at(w.name).to(at::kDouble) - w.tensor.to(at::kDouble);
      const double really = difference.norm().item<double>() / norm;
      if (got.rank == 0) {
        EXPECT_EQ(really, 0) << w.name;
        EXPECT_FALSE(got.reason.empty());
        continue;
      }
      ++cut;
      const double tail = s.slice(0, got.rank).norm().item<double>() / s.norm().item<double>();
      EXPECT_NEAR(got.truncation_error, tail, 1e-6) << w.name;
      EXPECT_NEAR(*got.error, tail, 1e-6) << w.name;
      EXPECT_NEAR(really, tail, 1e-6) << w.name;
      EXPECT_NEAR(got.energy, 1 - tail * tail, 1e-6) << w.name;
      EXPECT_EQ(got.bytes_after, static_cast<std::uint64_t>(4 * got.rank * (got.m + got.n)));
    }
    EXPECT_GE(cut, 4);
    EXPECT_EQ(report.file_after, std::filesystem::file_size(options_.output));
    EXPECT_EQ(report.file_before, std::filesystem::file_size(options_.input));
  }
  EXPECT_LT(row(run(fixed_rank(4)), "low.weight").truncation_error, 1e-6);
}

TEST_F(DecomposeFile, EverythingElseIsCopiedByTheByte) {
  const at::Tensor nothing = at::empty({3, 0});
  const at::Tensor vector = normal({1, 7});
  const at::Tensor half = normal({5}).to(at::kHalf);
  const at::Tensor counter = at::ones({2, 2}, at::kInt);
  const at::Tensor weight = normal({8, 6});
  input(
      {{"bias", half},
       {"counter", counter},
       {"embedding", vector},
       {"nothing", nothing},
       {"w", weight}});
  const DecomposeReport report = run(fixed_rank(2));
  const state::SafetensorsFile out(options_.output);
  EXPECT_TRUE(at::equal(out.read_integers("counter", {2, 2}), counter));
  EXPECT_EQ(report.other_tensors, 3);
  EXPECT_EQ(report.other_numbers, 9);
  EXPECT_EQ(report.other_bytes, 26u);
  const auto back = merged(options_.output);
  EXPECT_TRUE(at::equal(back.at("bias"), half));
  EXPECT_TRUE(at::equal(back.at("embedding"), vector));
  EXPECT_TRUE(at::equal(back.at("nothing"), nothing));
  EXPECT_EQ(back.at("w").sizes(), weight.sizes());
  EXPECT_EQ(row(report, "embedding").reason, "rank 1 saves nothing");
  EXPECT_EQ(out.metadata("by"), "me");
  EXPECT_EQ(out.metadata("shape:w"), "8,6");
}

TEST_F(DecomposeFile, FactorsHaveTheDtypeOfTheTensorOrTheOneAskedFor) {
  const at::Tensor w = normal({30, 20});
  input(
      {{"double", w.to(at::kDouble)},
       {"single", w},
       {"half", w.to(at::kHalf)},
       {"brain", w.to(at::kBFloat16)}});
  const auto dtype = [&](const std::string& name) {
    const state::SafetensorsFile file(options_.output);
    for (const state::StoredTensor& t : file.tensors()) {
      if (t.name == name) {
        return t.dtype;
      }
    }
    return std::string("none");
  };
  const DecomposeReport own = run(fixed_rank(5));
  EXPECT_EQ(dtype("double.A"), "F64");
  EXPECT_EQ(dtype("single.B"), "F32");
  EXPECT_EQ(dtype("half.A"), "F16");
  EXPECT_EQ(dtype("brain.B"), "BF16");
  options_.dtype = "bf16";
  const DecomposeReport brain = run(fixed_rank(5));
  EXPECT_EQ(dtype("double.A"), "BF16");
  EXPECT_EQ(row(brain, "single").bytes_after, 2u * 5 * 50);
  // What rounding adds shows in the measured error alone.
  const double exact = row(own, "single").truncation_error;
  EXPECT_EQ(row(brain, "single").truncation_error, exact);
  const double rounded = *row(brain, "single").error;
  EXPECT_GT(rounded, exact + 1e-6);
  EXPECT_LT(rounded, exact + 1e-3);
  const double really =
      (merged(options_.output).at("single") - w).norm().item<double>() / w.norm().item<double>();
  EXPECT_NEAR(rounded, really, 1e-6);
  options_.dtype = "fp16";
  input({{"big", 1e12 * w}});
  expect_error(
      [&] { run(fixed_rank(5)); }, ErrorKind::Diverged, {"'big': its factors are beyond what F16"});
}

TEST_F(DecomposeFile, OptionsSayWhatStaysDense) {
  const at::Tensor w = normal({20, 20});
  input(
      {{"a.fc.weight", w},
       {"a.head.weight", w},
       {"b.fc.weight", w},
       {"b.small.weight", normal({6, 6})},
       {"c.weight", w},
       {"c.weight.A", normal({4})}});
  options_.keep_dense = {"a.head", "b.f*"};
  options_.min_size = 37;
  const DecomposeReport report = run(fixed_rank(2));
  EXPECT_EQ(row(report, "a.fc.weight").rank, 2);
  EXPECT_EQ(row(report, "a.head.weight").reason, "--keep-dense");
  EXPECT_EQ(row(report, "b.fc.weight").reason, "--keep-dense");
  EXPECT_EQ(row(report, "b.small.weight").reason, "below --min-size");
  EXPECT_EQ(row(report, "c.weight").reason, "'c.weight.A' is another tensor");
  EXPECT_TRUE(at::equal(merged(options_.output).at("c.weight"), w));
  options_.keep_dense = {"a.head"};
  options_.only = {"a.*"};
  const DecomposeReport only = run(fixed_rank(2));
  EXPECT_EQ(row(only, "a.fc.weight").rank, 2);
  EXPECT_EQ(row(only, "a.head.weight").reason, "--keep-dense");
  EXPECT_EQ(row(only, "c.weight").reason, "not in --only");
  options_.only = {"a.typo"};
  expect_error(
      [&] { run(fixed_rank(2)); }, ErrorKind::Usage, {"--only: 'a.typo' matches no tensor"});
}

TEST_F(DecomposeFile, ABudgetIsOfTheWholeFile) {
  std::vector<state::NamedTensor> weights = {{"bias", normal({100})}};
  for (int i = 0; i < 5; ++i) {
    weights.push_back({"w" + std::to_string(i), i < 3 ? normal({48, 32}, i) : low_rank(48, 32, 3)});
  }
  input(weights);
  const std::int64_t all = 100 + 5 * 48 * 32;
  RankRule rule{.rule = RankRuleName::Budget, .ratio = 2.5};
  const DecomposeReport by_ratio = run(rule);
  std::int64_t after = 100;
  for (const DecomposedTensor& t : by_ratio.tensors) {
    after += t.rank > 0 ? t.rank * (t.m + t.n) : t.m * t.n;
  }
  EXPECT_LE(after, all / 2.5);
  EXPECT_GT(after, all / 2.5 - 80);
  // Ranks go where the numbers are.
  EXPECT_EQ(row(by_ratio, "w4").rank, 3);
  rule.ratio = 1000;
  expect_error([&] { run(rule); }, ErrorKind::Usage, {"expected at most 15.56"});
  const std::uint64_t whole = std::filesystem::file_size(options_.input);
  for (const std::uint64_t budget : {whole / 2, whole / 5}) {
    options_.budget_bytes = budget;
    const DecomposeReport report = run(rule);
    const std::uint64_t size = std::filesystem::file_size(options_.output);
    EXPECT_EQ(report.file_after, size);
    EXPECT_LE(size, budget);
    EXPECT_GE(size, budget - 400) << budget;
    merged(options_.output);
  }
  // Enough for all: what is of low rank costs nothing to cut.
  options_.budget_bytes = whole;
  const DecomposeReport enough = run(rule);
  EXPECT_EQ(row(enough, "w0").rank, 0);
  EXPECT_EQ(row(enough, "w4").rank, 3);
  options_.budget_bytes = 500;
  expect_error([&] { run(rule); }, ErrorKind::Usage, {"--budget: expected at least"});
}

TEST_F(DecomposeFile, NumbersThatAreNotFiniteAreNamed) {
  at::Tensor bad = normal({10, 10});
  bad[3][4] = std::numeric_limits<float>::quiet_NaN();
  input({{"good", normal({10, 10})}, {"bad.weight", bad}});
  std::filesystem::remove(folder_.file("out"));
  expect_error([&] { run(fixed_rank(2)); }, ErrorKind::Diverged, {"'bad.weight'", "--keep-dense"});
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out")));
  options_.keep_dense = {"bad"};
  EXPECT_EQ(row(run(fixed_rank(2)), "good").rank, 2);
}

TEST_F(DecomposeFile, ZerosAreOfRankOneAndNoError) {
  input({{"w", at::zeros({12, 9})}});
  const DecomposeReport report = run({.rule = RankRuleName::Energy});
  EXPECT_EQ(row(report, "w").rank, 1);
  EXPECT_EQ(*row(report, "w").error, 0);
  EXPECT_EQ(merged(options_.output).at("w").abs().max().item<double>(), 0);
}

TEST_F(DecomposeFile, ADryRunSaysTheSameAndWritesNothing) {
  input({{"a", normal({30, 20})}, {"b", normal({20, 30}, 2)}});
  const RankRule budget{.rule = RankRuleName::Budget, .ratio = 2};
  for (const RankRule& each : {fixed_rank(3), budget}) {
    const DecomposeReport real = run(each);
    std::filesystem::remove(options_.output);
    options_.output.clear();
    const DecomposeReport dry = decompose_file(options_, log_);
    EXPECT_EQ(dry.file_after, real.file_after);
    EXPECT_FALSE(dry.written);
    for (const DecomposedTensor& t : dry.tensors) {
      EXPECT_EQ(t.rank, row(real, t.name).rank);
      EXPECT_EQ(t.truncation_error, row(real, t.name).truncation_error);
      EXPECT_FALSE(t.error.has_value());
    }
    EXPECT_FALSE(std::filesystem::exists(folder_.file("out")));
  }
}

TEST_F(DecomposeFile, OutputsThatWouldDoHarmAreRefused) {
  input({{"a", normal({30, 20})}});
  options_.input = folder_.file("in");
  for (const std::string& output : {folder_.file("in"), folder_.path()}) {
    options_.output = output;
    expect_error([&] { decompose_file(options_, log_); }, ErrorKind::Usage);
  }
  options_.output = folder_.file("no/such/out");
  expect_error([&] { decompose_file(options_, log_); }, ErrorKind::Io);
  EXPECT_EQ(merged(options_.input).size(), 1u);
}

// abtrain takes the result for what it is; a second pass leaves factors alone.
TEST_F(DecomposeFile, TheResultIsAModelFile) {
  const at::NoGradGuard no_grad;
  const auto model = small_vgg();
  model->initialize(nn::InitName::Kaiming, 1);
  save_model(folder_.file("in"), *model);
  run(fixed_rank(4));
  const auto other = small_vgg();
  load_model(options_.output, *other);
  EXPECT_LT(other->stored_parameters(), model->stored_parameters());
  const auto want = merged(options_.output);
  for (const nn::NamedWeight& w : other->weights()) {
    const at::Tensor difference = w.weight->merged() - want.at(w.name);
    EXPECT_LT(difference.abs().max().item<double>(), 1e-6) << w.name;
  }
  std::filesystem::rename(folder_.file("out"), folder_.file("in"));
  const DecomposeReport again = run(fixed_rank(2));
  EXPECT_EQ(row(again, "features.3.weight.A").reason, "already a factor");
  const auto third = small_vgg();
  load_model(options_.output, *third);
  EXPECT_EQ(third->stored_parameters(), other->stored_parameters());
}

TEST_F(DecomposeFile, ReportsAgree) {
  input({{"odd,\"name\"", normal({30, 20})}, {"bias", normal({3})}});
  const DecomposeReport report = run(fixed_rank(3));
  const auto written = decompose_json(report);
  EXPECT_EQ(written["tensors"][0]["rank"], 3);
  EXPECT_EQ(written["totals"]["numbers_after"], 153);
  EXPECT_EQ(written["totals"]["factored"], 1);
  EXPECT_DOUBLE_EQ(written["totals"]["error"].get<double>(), *report.tensors[0].error);
  const std::string csv = decompose_csv(report);
  EXPECT_NE(csv.find("\n\"odd,\"\"name\"\"\",30x20,30,20,3,F32,"), std::string::npos) << csv;
  const std::string table = decompose_table(report);
  EXPECT_NE(table.find("603 -> 153 numbers, 3.94:1"), std::string::npos) << table;
}

}  // namespace
}  // namespace abtrain::weights
