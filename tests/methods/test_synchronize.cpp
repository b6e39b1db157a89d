#include "methods/ab/synchronize.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <tuple>
#include <vector>

#include "comm/meter.h"
#include "comm/run_workers.h"

namespace abtrain::methods {
namespace {

using comm::Communicator;
using comm::Groups;
using comm::Role;

struct SyncCase {
  int workers;
  int group_size;
  SyncMode mode;
};

std::vector<SyncCase> cases() {
  std::vector<SyncCase> all;
  for (const int workers : {2, 4, 6, 8}) {
    for (int g = 1; g <= workers / 2; ++g) {
      if (workers % g == 0 && workers / g % 2 == 0) {
        for (const SyncMode mode : {SyncMode::OnlyLearned, SyncMode::WithStale, SyncMode::Full}) {
          all.push_back({workers, g, mode});
        }
      }
    }
  }
  for (const int workers : {1, 2, 3, 4, 8}) {
    for (int g = 1; g <= workers; ++g) {
      if (workers % g == 0) {
        all.push_back({workers, g, SyncMode::OnlyB});
      }
    }
  }
  return all;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

class SyncModes : public ::testing::TestWithParam<SyncCase> {};

// What each mode means, said with every worker's own A_i and B_i in float64,
// against what comes out of the exchange and the merge.
TEST_P(SyncModes, EqualsItsDefinition) {
  const auto [workers, group_size, mode] = GetParam();
  // Workers with unequal batches, where the mode is a mean of what was learned.
  std::vector<std::int64_t> batches;
  for (int r = 0; r < workers && (mode == SyncMode::OnlyLearned || mode == SyncMode::OnlyB); ++r) {
    batches.push_back(5 + 7 * r % 11);
  }
  const Groups groups = comm::make_groups(workers, group_size, mode == SyncMode::OnlyB);
  constexpr int kM = 13, kN = 7, kR = 3;
  const auto f64 = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor a0 = at::randn({kM, kR}, f64);
  const at::Tensor b0 = at::randn({kR, kN}, f64);
  // One change a group: members of a group hold the same bits.
  std::vector<at::Tensor> change;
  for (int g = 0; g < groups.count; ++g) {
    const bool is_a = groups.role_of(g * group_size) == Role::A;
    change.push_back(is_a ? at::randn({kM, kR}, f64) : at::randn({kR, kN}, f64));
  }
  at::Tensor a_learned = at::zeros({kM, kR}, f64);
  at::Tensor b_learned = at::zeros({kR, kN}, f64);
  at::Tensor a_all = at::zeros({kM, kR}, f64);
  at::Tensor b_all = at::zeros({kR, kN}, f64);
  at::Tensor w_all = at::zeros({kM, kN}, f64);
  double a_batches = 0;
  double b_batches = 0;
  for (int r = 0; r < workers; ++r) {
    const double batch =
        batches.empty() ? 1 : static_cast<double>(batches[static_cast<std::size_t>(r)]);
    const bool is_a = groups.role_of(r) == Role::A;
    const at::Tensor& d = change[static_cast<std::size_t>(groups.group_of(r))];
    const at::Tensor a = is_a ? a0 + d : a0;
    const at::Tensor b = is_a ? b0 : b0 + d;
    (is_a ? a_learned : b_learned) += batch * (is_a ? a : b);
    (is_a ? a_batches : b_batches) += batch;
    a_all += a / workers;
    b_all += b / workers;
    w_all += at::matmul(a, b) / workers;
  }
  b_learned /= b_batches;
  at::Tensor expected;
  if (mode == SyncMode::OnlyLearned) {
    expected = at::matmul(a_learned / a_batches, b_learned);
  } else if (mode == SyncMode::WithStale) {
    expected = at::matmul(a_all, b_all);
  } else if (mode == SyncMode::Full) {
    expected = w_all;
  } else {
    expected = at::matmul(a0, b_learned);
  }

  comm::run_workers(workers, 20, [&](Communicator& world) {
    comm::TrafficMeter meter;
    const auto metered = comm::metered(world, "world", meter);
    FactorExchange exchange(*metered, groups, batches);
    const at::Tensor own = change[static_cast<std::size_t>(groups.group_of(world.rank()))]
                               .to(at::kFloat)
                               .reshape({-1})
                               .contiguous();
    const FlatFactors mean =
        exchange.mean_changes(own, kM * kR, kR * kN, at::kFloat, comm::Purpose::Sync);
    const linalg::LowRankPair merged = merge_factors(
        mode, {a0.to(at::kFloat), b0.to(at::kFloat)},
        {mean.a.defined() ? mean.a.view({kM, kR}) : at::Tensor(), mean.b.view({kR, kN})});
    EXPECT_LT(largest_difference(at::matmul(merged.a, merged.b), expected), 1e-5);
    EXPECT_EQ(merged.a.size(1), mode == SyncMode::Full ? 2 * kR : kR);
    EXPECT_EQ(
        meter.of(comm::Purpose::Sync).bytes,
        FactorExchange::bytes_sent(groups, world.rank(), kM * kR, kR * kN, 4));
    // The same bits everywhere.
    at::Tensor sum = at::cat({merged.a.reshape({-1}), merged.b.reshape({-1})});
    at::Tensor largest = sum.clone();
    at::Tensor smallest = -sum.clone();
    world.all_reduce(largest, comm::ReduceOp::Max, comm::Purpose::Metrics).wait();
    world.all_reduce(smallest, comm::ReduceOp::Max, comm::Purpose::Metrics).wait();
    EXPECT_TRUE(at::equal(largest, -smallest));
  });
}

INSTANTIATE_TEST_SUITE_P(All, SyncModes, ::testing::ValuesIn(cases()), [](const auto& each) {
  std::string name = name_of(each.param.mode) + "_" + std::to_string(each.param.workers) + "x" +
                     std::to_string(each.param.group_size);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// A size that does not fit gives way only to one that does.
TEST(FitGroupSize, GivesWayToAutoWhereThatFits) {
  MethodOptions options;
  options.group_size = 2;
  EXPECT_FALSE(fit_group_size(options, 4));  // it fits
  EXPECT_FALSE(fit_group_size(options, 1));  // one worker cannot train A and B
  EXPECT_EQ(options.group_size, 2);
  EXPECT_TRUE(fit_group_size(options, 3));
  EXPECT_FALSE(options.group_size.has_value());
  options.group_size = 2;
  options.sync = SyncMode::OnlyB;
  EXPECT_TRUE(fit_group_size(options, 1));
  EXPECT_FALSE(fit_group_size(options, 4));
}

// The four formulas of the header to 1e-6, in float64.
TEST(MergeFactors, Formulas) {
  const auto f64 = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor a0 = at::randn({9, 4}, f64), b0 = at::randn({4, 6}, f64);
  const at::Tensor da = at::randn({9, 4}, f64), db = at::randn({4, 6}, f64);
  const auto product = [&](SyncMode mode, const at::Tensor& change_a) {
    const linalg::LowRankPair p = merge_factors(mode, {a0, b0}, {change_a, db});
    return at::matmul(p.a, p.b);
  };
  const auto mm = [](const at::Tensor& x, const at::Tensor& y) { return at::matmul(x, y); };
  const at::Tensor w0 = mm(a0, b0);
  EXPECT_LT(largest_difference(product(SyncMode::OnlyLearned, da), mm(a0 + da, b0 + db)), 1e-6);
  EXPECT_LT(
      largest_difference(
          product(SyncMode::WithStale, da), w0 + mm(da, b0) / 2 + mm(a0, db) / 2 + mm(da, db) / 4),
      1e-6);
  EXPECT_LT(
      largest_difference(product(SyncMode::Full, da), w0 + mm(da, b0) / 2 + mm(a0, db) / 2), 1e-6);
  EXPECT_LT(largest_difference(product(SyncMode::OnlyB, {}), mm(a0, b0 + db)), 1e-6);
}

TEST(FactorExchange, Bf16SendsHalfAndRoundsOnlyTheChange) {
  const Groups groups = comm::make_groups(4, 2, false);
  comm::run_workers(4, 20, [&](Communicator& world) {
    comm::TrafficMeter meter;
    const auto metered = comm::metered(world, "world", meter);
    FactorExchange exchange(*metered, groups);
    const at::Tensor own = at::zeros({101}) + (world.rank() < 2 ? 1.0 : 3.0);
    const FlatFactors mean =
        exchange.mean_changes(own, 101, 101, at::kBFloat16, comm::Purpose::Sync);
    EXPECT_EQ(mean.a.min().item<float>(), 1.0F);
    EXPECT_EQ(mean.b.max().item<float>(), 3.0F);
    EXPECT_EQ(
        meter.of(comm::Purpose::Sync).bytes,
        FactorExchange::bytes_sent(groups, world.rank(), 101, 101, 2));
  });
}

// Each group's record is decoded by all, and what it leaves out stays with the
// group.
TEST(FactorExchange, CodesHoldTheMeanUpToTheResiduals) {
  for (const auto& [workers, group_size, only_b] :
       {std::tuple{4, 2, false}, {4, 1, false}, {6, 3, false}, {4, 2, true}}) {
    const Groups groups = comm::make_groups(workers, group_size, only_b);
    const std::vector<std::int64_t> all = {9, 4, 2, 7, 7, 1};
    const std::vector<std::int64_t> batches(all.begin(), all.begin() + workers);
    const std::int64_t a = 1001;
    const std::int64_t b = 301;
    std::vector<at::Tensor> change;
    for (int g = 0; g < groups.count; ++g) {
      change.push_back(at::randn({groups.role_of(g * group_size) == Role::A ? a : b}));
    }
    for (const ops::WireCode code :
         {ops::WireCode::Int8, ops::WireCode::Int4, ops::WireCode::Int2, ops::WireCode::Sparse}) {
      const ops::WireFormat format{code, 1.0 / 16};
      std::mutex mutex;
      std::vector<at::Tensor> left(change.size());
      FlatFactors mean;
      comm::run_workers(workers, 20, [&](Communicator& world) {
        comm::TrafficMeter meter;
        const auto metered = comm::metered(world, "world", meter);
        FactorExchange exchange(*metered, groups, batches);
        const auto group = static_cast<std::size_t>(groups.group_of(world.rank()));
        const at::Tensor own = change[group].clone();
        const FlatFactors got = exchange.mean_changes(own, a, b, format, comm::Purpose::Sync);
        EXPECT_EQ(
            meter.of(comm::Purpose::Sync).bytes,
            FactorExchange::bytes_sent(groups, world.rank(), a, b, format));
        const std::lock_guard lock(mutex);
        if (mean.b.defined()) {
          EXPECT_TRUE(at::equal(mean.b, got.b));
          EXPECT_EQ(mean.a.defined(), got.a.defined());
          EXPECT_TRUE(!got.a.defined() || at::equal(mean.a, got.a));
        }
        mean = got;
        if (left[group].defined()) {
          EXPECT_TRUE(at::equal(left[group], own));
        }
        left[group] = own;
      });
      at::Tensor sum_a = at::zeros({a}, at::kDouble);
      at::Tensor sum_b = at::zeros({b}, at::kDouble);
      std::int64_t of_a = 0;
      std::int64_t of_b = 0;
      for (std::size_t g = 0; g < change.size(); ++g) {
        const bool is_a = groups.role_of(static_cast<int>(g) * group_size) == Role::A;
        const auto first = batches.begin() + static_cast<std::ptrdiff_t>(g) * group_size;
        const auto examples = std::accumulate(first, first + group_size, std::int64_t{0});
        (is_a ? sum_a : sum_b) += examples * (change[g].to(at::kDouble) - left[g]);
        (is_a ? of_a : of_b) += examples;
        EXPECT_LT(left[g].norm().item<double>(), change[g].norm().item<double>());
      }
      EXPECT_LT(largest_difference(mean.b, sum_b / of_b), 1e-5);
      EXPECT_EQ(mean.a.defined(), of_a > 0);
      if (of_a > 0) {
        EXPECT_LT(largest_difference(mean.a, sum_a / of_a), 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::methods
