// What AB-training carries over to another number of workers, or of groups of a role: the velocity
// of the outer step, changes that codes left out, and moments.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "comm/share.h"
#include "local_workers.h"

namespace abtrain::methods {
namespace {

using testing::ab_run;
using testing::both_run;
using testing::LocalRun;
using testing::LocalWorker;
using testing::with_workers;

constexpr std::int64_t kLostAt = 11;  // steps done, of which the last ones were not sent

// Of each of three workers.
struct Left {
  std::vector<state::State> states = std::vector<state::State>(3);
  std::vector<at::Tensor> values = std::vector<at::Tensor>(3), moments = values;
  std::vector<at::Tensor> a = values, b = values;  // factors of the first layer
  double rate = 0;                                 // of the next step
};

Left train(const LocalRun& run) {
  Left left;
  with_workers(3, run, [&](LocalWorker& w, int rank) {
    const auto i = static_cast<std::size_t>(rank);
    w.method->start();
    w.go(0, kLostAt);
    left.states[i] = w.save();
    left.values[i] = w.method->block().values().clone();
    left.moments[i] = w.method->block().moments().clone();
    nn::Weight& first = *w.model->weights()[0].weight;
    left.a[i] = first.factor(nn::Factor::A).detach().clone();
    if (rank == 0) {
      left.rate = w.method->learning_rate(kLostAt);
    }
    left.b[i] = first.factor(nn::Factor::B).detach().clone();
  });
  return left;
}

at::Tensor mean(const std::vector<at::Tensor>& all) {
  return at::stack(all).mean(0);
}

at::Tensor replicas(const state::State& state, const std::string& name) {
  const auto found = state.replicas.find(name);
  return found == state.replicas.end() ? at::Tensor() : found->second;
}

// The factor of the first layer in a flat buffer, as a matrix.
at::Tensor first_of(const LocalWorker& w, const at::Tensor& flat, nn::Factor which) {
  nn::Weight& first = *w.model->weights()[0].weight;
  return first.to_matrix(which, nn::view_at(flat, 0, first.stored_sizes(which, first.rank())));
}

bool near(const at::Tensor& a, const at::Tensor& b, double tolerance = 1e-6) {
  return a.defined() && b.defined() && a.sizes() == b.sizes() &&
         at::allclose(a, b, 0, tolerance * b.abs().max().item<double>());
}

// Groups that train both factors go on in the same bases, with everything that they had.
TEST(AbRegroup, GroupsOfBothFactorsKeepAll) {
  LocalRun run = both_run(4);
  run.method.outer.name = OuterRule::Nesterov;
  run.method.outer.wire.name = "int2";
  run.method.outer.wire.dtype = at::kFloat;
  run.steps = 20;
  const Left left = train(run);
  with_workers(2, run, [&](LocalWorker& w, int) {
    w.regroup(left.states, kLostAt);
    at::Tensor expected = mean(left.values);
    for (const state::State& state : left.states) {
      const at::Tensor factors = replicas(state, "outer.residual");
      const at::Tensor dense = replicas(state, "outer.dense_residual");
      ASSERT_GT(factors.abs().max().item<float>(), 1e-3);
      expected.narrow(0, 0, factors.numel()).add_(factors / 3);
      expected.narrow(0, factors.numel(), dense.numel()).add_(dense / 3);
    }
    EXPECT_TRUE(near(w.method->block().values(), expected));
    EXPECT_TRUE(near(w.method->block().moments(), mean(left.moments)));
    const state::State now = w.save();
    for (const char* name : {"outer.velocity_a", "outer.velocity_b"}) {
      ASSERT_GT(replicas(now, name).abs().max().item<float>(), 1e-3);
      EXPECT_TRUE(at::equal(replicas(now, name), replicas(left.states[2], name))) << name;
    }
    EXPECT_EQ(replicas(now, "outer.residual").numel(), 0);  // nothing is owed twice
    EXPECT_TRUE(w.observer.events.empty());
    EXPECT_EQ(w.method->learning_rate(kLostAt), left.rate);  // it need not climb again
    w.go(kLostAt, run.steps);
    w.method->finish(run.steps);
    EXPECT_TRUE(w.method->replicas_agree(run.steps));
  });
}

// One group trains A, and two train B; then one trains each. The bases change.
TEST(AbRegroup, GroupsOfOneFactorTakeVelocityAndMomentsAlong) {
  for (const FactorMoments moments : {FactorMoments::Zero, FactorMoments::Carry}) {
    LocalRun run = ab_run(0, 4, 0);
    run.method.outer.name = OuterRule::Nesterov;
    run.method.outer.wire.name = "int2";
    run.method.moments = moments;
    run.steps = 20;
    const Left left = train(run);
    with_workers(2, run, [&](LocalWorker& w, int rank) {
      const nn::Factor own = rank == 0 ? nn::Factor::A : nn::Factor::B;
      nn::Weight& first = *w.model->weights()[0].weight;
      w.regroup(left.states, kLostAt);
      const at::NoGradGuard no_grad;
      const state::State now = w.save();
      const auto owed = [&](std::size_t worker, nn::Factor which) {
        return first_of(w, replicas(left.states[worker], "outer.residual"), which);
      };
      // The merged factors, with what codes left out.
      const at::Tensor a = first.to_matrix(nn::Factor::A, left.a[0]) + owed(0, nn::Factor::A);
      const at::Tensor b = first.to_matrix(nn::Factor::B, (left.b[1] + left.b[2]) / 2) +
                           (owed(1, nn::Factor::B) + owed(2, nn::Factor::B)) / 2;
      const at::Tensor new_a = first.pair().a;
      const at::Tensor new_b = first.pair().b;
      EXPECT_TRUE(near(at::matmul(new_a, new_b), at::matmul(a, b), 1e-5));
      const auto velocity = [&](const state::State& state, nn::Factor which) {
        return first_of(
            w, replicas(state, which == nn::Factor::A ? "outer.velocity_a" : "outer.velocity_b"),
            which);
      };
      // It changes the weight as before.
      EXPECT_TRUE(near(
          at::matmul(velocity(now, nn::Factor::A), new_b),
          at::matmul(velocity(left.states[1], nn::Factor::A), b), 1e-4));
      EXPECT_TRUE(near(
          at::matmul(new_a, velocity(now, nn::Factor::B)),
          at::matmul(a, velocity(left.states[1], nn::Factor::B)), 1e-4));
      const optim::ParameterBlock& block = w.method->block();
      const std::size_t i = block.index_of(own == nn::Factor::A ? "fc1.weight.A" : "fc1.weight.B");
      const at::Tensor moment = block.moment_views(0)[i];
      EXPECT_EQ(moment.abs().max().item<float>() > 0, moments == FactorMoments::Carry);
      w.go(kLostAt, run.steps);
      w.method->finish(run.steps);
      EXPECT_TRUE(w.method->replicas_agree(run.steps));
    });
  }
}

// Where the only group that trained A is lost, another one takes A as it was.
TEST(AbRegroup, ALostRoleBeginsWithItsFactorAsItWas) {
  LocalRun run = ab_run(0, 4, 0);
  run.method.outer.name = OuterRule::Nesterov;
  run.method.moments = FactorMoments::Carry;
  run.steps = 20;
  Left left = train(run);
  left.states.erase(left.states.begin());
  with_workers(2, run, [&](LocalWorker& w, int) {
    nn::Weight& first = *w.model->weights()[0].weight;
    w.regroup(left.states, kLostAt);
    const at::NoGradGuard no_grad;
    const at::Tensor now = at::matmul(first.pair().a, first.pair().b);
    const at::Tensor before = at::matmul(
        first.to_matrix(nn::Factor::A, left.a[1]),
        first.to_matrix(nn::Factor::B, (left.b[1] + left.b[2]) / 2));
    EXPECT_TRUE(near(now, before, 1e-5));
    w.method->check_replicas(kLostAt);
    w.go(kLostAt, run.steps);
    w.method->finish(run.steps);
    EXPECT_TRUE(w.method->replicas_agree(run.steps));
  });
}

// Groups train on their own, so that a loss finds them at different steps.
TEST(AbRegroup, GroupsAtDifferentStepsAgreeOnTheCount) {
  for (const LocalRun& run : {ab_run(0, 20, 0), both_run(20)}) {
    std::vector<state::State> states(3);
    with_workers(3, run, [&](LocalWorker& w, int rank) {
      const std::int64_t at = kLostAt + (rank + 2) % 3;
      w.method->start();
      w.go(0, at);
      for (const at::Tensor& steps : w.method->block().steps()) {
        steps.fill_(static_cast<double>(at));
      }
      states[static_cast<std::size_t>(rank)] = w.save();
    });
    with_workers(2, run, [&](LocalWorker& w, int) {
      w.regroup(states, kLostAt + 2);
      const optim::ParameterBlock& block = w.method->block();
      const float steps = block.steps()[block.index_of("fc1.bias")].item<float>();
      EXPECT_GE(steps, kLostAt);
      for (const float of_worker : comm::gather_values(w.world(), steps)) {
        EXPECT_EQ(of_worker, steps);
      }
    });
  }
}

}  // namespace
}  // namespace abtrain::methods
