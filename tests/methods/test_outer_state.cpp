#include "methods/ab/outer_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <utility>

#include "comm/run_workers.h"
#include "methods/ab_layers.h"

namespace abtrain::methods {
namespace {

using nn::Factor;

MethodOptions options_of(SyncMode sync, const char* wire) {
  MethodOptions options;
  options.name = "ab";
  options.sync = sync;
  options.outer.name = sync == SyncMode::Full ? OuterRule::Average : OuterRule::Nesterov;
  if (wire != std::string("auto")) {
    options.outer.wire.name = wire;
  }
  return options;
}

at::Tensor flat(const nn::Weight& w, Factor which, const at::Tensor& matrix) {
  const at::Tensor stored = w.to_stored(which, matrix);
  at::Tensor result = at::empty({stored.numel()}, stored.options());
  nn::view_at(result, 0, stored.sizes().vec()).copy_(stored);
  return result;
}

at::Tensor matrix_of(
    const nn::Weight& w, Factor which, const at::Tensor& values, std::int64_t rank) {
  return w.to_matrix(which, nn::view_at(values, 0, w.stored_sizes(which, rank)));
}

// A kept change alters the weight by the same after a decomposition as before.
class KeptChange : public ::testing::TestWithParam<std::vector<std::int64_t>> {};

TEST_P(KeptChange, MeansTheSameInTheNewBasis) {
  constexpr std::int64_t kRank = 5;
  nn::Weight w(GetParam());
  for (const SyncMode sync : {SyncMode::OnlyLearned, SyncMode::Full}) {
    const linalg::LowRankPair start = {at::randn({w.m(), kRank}), at::randn({kRank, w.n()})};
    const linalg::LowRankPair merged = merge_factors(
        sync, start, {at::randn({w.m(), kRank}) * 0.1, at::randn({kRank, w.n()}) * 0.1});
    // Nothing is cut.
    const std::int64_t rank = merged.a.size(1);
    const linalg::LowRankPair after = balanced(at::matmul(merged.a, merged.b), rank);
    const at::Tensor base_a = sync == SyncMode::Full ? start.a : merged.a;
    const at::Tensor base_b = sync == SyncMode::Full ? start.b : merged.b;
    for (const Factor own : {Factor::A, Factor::B}) {
      OuterState state(options_of(sync, "int4"));
      ASSERT_TRUE(state.format());
      const at::Tensor residual =
          own == Factor::A ? at::randn({w.m(), kRank}) : at::randn({kRank, w.n()});
      state.factor_residual = flat(w, own, residual);
      state.change_basis({own}, {layer_of(w, kRank, merged, after)});
      at::Tensor got = at::zeros({w.factor_numel(own, rank)});
      state.add_residual(state.factor_residual, got);
      const at::Tensor moved = matrix_of(w, own, got, rank);
      if (own == Factor::A) {
        EXPECT_LT(
            relative_distance(at::matmul(moved, after.b), at::matmul(residual, base_b)), 1e-4);
      } else {
        EXPECT_LT(
            relative_distance(at::matmul(after.a, moved), at::matmul(base_a, residual)), 1e-4);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, KeptChange,
    ::testing::Values(
        std::vector<std::int64_t>{30, 20}, std::vector<std::int64_t>{20, 30},
        std::vector<std::int64_t>{16, 8, 3, 3}));

// What a cut removes from the weight is removed from the velocity.
TEST(OuterState, AVelocityIsCutWithItsWeight) {
  nn::Weight w({12, 9});
  nn::Weight other({7, 7});
  const linalg::LowRankPair merged = {at::randn({12, 4}), at::randn({4, 9})};
  const linalg::LowRankPair after = balanced(at::matmul(merged.a, merged.b), 2);
  OuterState state(options_of(SyncMode::OnlyLearned, "auto"));
  FlatFactors change = {at::randn({48}), at::randn({36})};
  const FlatFactors first = {change.a.clone(), change.b.clone()};
  state.step(change);  // velocity: -first
  // Another layer becomes factored: it has no velocity yet.
  state.change_basis(
      {Factor::A}, {layer_of(w, 4, merged, after),
                    layer_of(other, 0, {}, {at::randn({7, 3}), at::randn({3, 7})})});
  FlatFactors next = {at::zeros({12 * 2 + 7 * 3}), at::zeros({2 * 9 + 3 * 7})};
  state.step(next);  // lr * momentum * momentum * velocity
  const double scale = 0.7 * 0.9 * 0.9;
  const at::Tensor a = matrix_of(w, Factor::A, next.a / scale, 2);
  const at::Tensor b = matrix_of(w, Factor::B, next.b / scale, 2);
  const auto project = [](const at::Tensor& v) { return at::matmul(v.t(), v); };
  // after.b has orthogonal rows, so dA B projected on their span is wanted.
  const at::Tensor unit_b = after.b / after.b.norm(2, 1, true);
  const at::Tensor unit_a = after.a / after.a.norm(2, 0, true);
  EXPECT_LT(
      relative_distance(
          at::matmul(a, after.b),
          at::matmul(at::matmul(matrix_of(w, Factor::A, first.a, 4), merged.b), project(unit_b))),
      1e-4);
  EXPECT_LT(
      relative_distance(
          at::matmul(after.a, b), at::matmul(
                                      at::matmul(unit_a, unit_a.t()),
                                      at::matmul(merged.a, matrix_of(w, Factor::B, first.b, 4)))),
      1e-4);
  EXPECT_EQ(next.a.narrow(0, 24, 21).abs().max().item<float>(), 0);
  EXPECT_EQ(next.b.narrow(0, 18, 21).abs().max().item<float>(), 0);
}

TEST(OuterState, WhatCodesLeaveOutIsSentLater) {
  constexpr std::int64_t kNumel = 5000;
  const comm::Groups groups = comm::make_groups(2, 1, /*one_role=*/true);
  comm::run_workers(2, 20, [&](comm::Communicator& world) {
    FactorExchange exchange(world, groups);
    OuterState state(options_of(SyncMode::OnlyLearned, "int2"));
    at::Tensor unsent;
    at::Tensor owed = at::zeros({kNumel});
    at::Tensor sent = at::zeros({kNumel});
    for (int k = 1; k <= 10; ++k) {
      const at::Tensor change = at::arange(kNumel, at::kFloat).mul(k + 0.3 * world.rank()).sin();
      owed += change;
      at::Tensor next = change.clone();
      sent += state.send(unsent, next, exchange, 0, kNumel, comm::Purpose::Sync).b;
      unsent = next;
    }
    EXPECT_GT(unsent.abs().max().item<float>(), 0.1);
    owed -= unsent;
    world.all_reduce(owed, comm::ReduceOp::Mean, comm::Purpose::Metrics).wait();
    EXPECT_LT((owed - sent).abs().max().item<float>(), 1e-5);
  });
}

TEST(OuterState, WhatCodesLeaveOutDecaysOrIsDropped) {
  MethodOptions options = options_of(SyncMode::OnlyLearned, "int2");
  options.outer.wire.error_decay = 0.25;
  OuterState decaying(options);
  const at::Tensor residual = at::randn({9});
  decaying.factor_residual = residual.clone();
  at::Tensor change = at::zeros({9});
  decaying.add_residual(decaying.factor_residual, change);
  EXPECT_TRUE(at::equal(change, residual * 0.25));

  options.outer.wire.error_feedback = false;
  const comm::Groups groups = comm::make_groups(1, 1, /*one_role=*/true);
  comm::run_workers(1, 20, [&](comm::Communicator& world) {
    FactorExchange exchange(world, groups);
    OuterState forgetting(options);
    at::Tensor sent = at::randn({9});
    forgetting.send({}, sent, exchange, 0, 9, comm::Purpose::Sync);
    EXPECT_FALSE(sent.defined());
  });
}

TEST(OuterState, GoesThroughAnArchive) {
  MethodOptions options = options_of(SyncMode::OnlyLearned, "int2");
  options.trains = Trains::Both;
  OuterState state(options);
  FlatFactors change = {at::randn({6}), at::randn({4})};
  state.step(change);
  state.factor_residual = at::randn({6});
  state.dense_residual = at::randn({3});
  state::State saved;
  auto saving = state::Archive::saving(saved);
  state.archive(saving, 6, 3, 6, 4);
  for (auto& [name, tensor] : saved.replicas) {
    tensor = tensor.clone();  // was stored by reference
  }
  OuterState loaded(options);
  auto loading = state::Archive::loading(saved);
  loaded.archive(loading, 6, 3, 6, 4);
  for (const auto& [residual, numel] :
       {std::pair(&OuterState::factor_residual, 6), {&OuterState::dense_residual, 3}}) {
    at::Tensor kept = at::zeros({numel});
    at::Tensor again = at::zeros({numel});
    state.add_residual(state.*residual, kept);
    loaded.add_residual(loaded.*residual, again);
    EXPECT_TRUE(at::equal(kept, again));
    EXPECT_GT(kept.abs().max().item<float>(), 0);
  }
  FlatFactors one = {at::zeros({6}), at::zeros({4})};
  FlatFactors two = {at::zeros({6}), at::zeros({4})};
  state.step(one);
  loaded.step(two);
  EXPECT_TRUE(at::equal(one.a, two.a));
  EXPECT_TRUE(at::equal(one.b, two.b));
  EXPECT_GT(one.b.abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace abtrain::methods
