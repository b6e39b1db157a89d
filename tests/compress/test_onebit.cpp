#include <ATen/ops/ones.h>

#include "compress/code_schemes.h"

namespace abtrain::compress {
namespace {

const ReducerOptions kOptions = scheme("onebit");

// A bit and 1/128 of a scale's word a number each way; two bits with a mask.
TEST(OneBit, BytesAreThoseOfTheFormula) {
  const std::int64_t blocks = 64;
  const auto slots = one_slot({blocks, 4096});
  for (const int n : {2, 4, 8}) {
    const double bits = 2.0 * (n - 1) / n * blocks * 512;
    const double scales = 2.0 * (n - 1) / n * blocks * 4;
    EXPECT_EQ(mean_bytes(kOptions, slots, n, 1), bits + scales);
    EXPECT_EQ(mean_bytes(kOptions, slots, n, 0), 2 * bits + scales);
    EXPECT_EQ(mean_bytes(kOptions, slots, n, 8), 2 * bits + scales);
    EXPECT_EQ(volume_of(kOptions, slots, {n, 0}, 1).payload_bits, 2 * 8 * blocks * (512 + 4));
    EXPECT_EQ(volume_of(kOptions, slots, {n, 0}, 8).payload_bits, 2 * 8 * blocks * (1024 + 4));
    // One turn in eight has a mask.
    EXPECT_EQ(ExchangePlan(kOptions, slots, {n, 0}).usual_bytes(), bits * 9 / 8 + scales);
  }
}

// The scheme written down in float64, for a tensor of one block.
TEST(OneBit, DoesWhatTheAlgorithmSays) {
  constexpr int n = 2;
  constexpr std::int64_t d = 300;
  const auto compressed = [](const at::Tensor& x) {
    return x.sign().mul(x.norm().div(std::sqrt(double{d})));
  };
  std::vector<at::Tensor> worker(n, at::zeros({d}, at::kDouble));
  at::Tensor server = at::zeros({d}, at::kDouble);
  run_steps(
      kOptions, one_slot({d}), n, 10, normal_gradients(d, 0.3),
      [&](std::int64_t t, const Step& step) {
        at::Tensor mean = at::zeros({d}, at::kDouble);
        for (std::size_t i = 0; i < n; ++i) {
          const at::Tensor u = worker[i].add(step.gradients[i]);
          worker[i] = u.sub(compressed(u));
          mean.add_(compressed(u), 1.0 / n);
          EXPECT_TRUE(worker[i].allclose(step.residuals[i].to(at::kDouble), 1e-4, 1e-5)) << t;
        }
        const at::Tensor x = mean.add(server);
        server = x.sub(compressed(x));
        EXPECT_TRUE(compressed(x).allclose(step.estimates[0].to(at::kDouble), 1e-4, 1e-5)) << t;
      });
}

// A method that exchanges now and then, in steps of which none is a multiple of
// the masks' period.
TEST(OneBit, MasksFollowTheExchangesNotTheSteps) {
  constexpr std::int64_t numel = 5000;
  constexpr std::int64_t interval = 8;
  for (const std::int64_t dense : {0, 3, 21}) {
    ReducerOptions options = kOptions;
    options.dense_steps = dense;
    const auto slots = one_slot({numel});
    comm::run_workers(2, 60, [&](comm::Communicator& base) {
      comm::TrafficMeter meter;
      auto world = metered(base.split(0), "world", meter);
      const at::Tensor flat = at::zeros({numel});
      GradientExchange exchange(options, 5, interval);
      exchange.bind(slots, flat, *world);
      std::int64_t end = 0;
      for (std::int64_t t = 5; t < 200; t += interval) {
        flat.copy_(normal_gradients(numel)(world->rank(), t));
        flat.narrow(0, 0, numel / 2).zero_();  // dead on all workers
        exchange.finish(t);
        EXPECT_TRUE(flat.narrow(0, 0, numel / 2).eq(0).all().item<bool>())
            << "step " << t << " dense " << dense;
        end = t + 1;
      }
      const ExchangePlan plan(options, slots, {2, world->rank()});
      EXPECT_EQ(meter.of(comm::Purpose::Gradient).bytes, plan.bytes_between(5, end, interval));
    });
  }
}

// Every third number is zero on all workers, one more on all but the last.
TEST(OneBit, WhatIsZeroOnAllWorkersStaysZero) {
  constexpr std::int64_t numel = 5000;
  constexpr std::int64_t wakes = 10;  // the step in which number 6 does
  at::Tensor dead = at::zeros({numel}, at::kBool);
  for (std::int64_t i = 0; i < numel; i += 3) {
    dead[i].fill_(true);
  }
  for (const bool feedback : {true, false}) {
    ReducerOptions options = kOptions;
    options.error_feedback = feedback;
    run_steps(
        options, one_slot({numel}), 3, 20,
        [&](int worker, std::int64_t step) {
          at::Tensor g = normal_gradients(numel)(worker, step);
          g.masked_fill_(dead, 0);
          if (worker < 2) {
            g[4].fill_(0);
          }
          g[6].fill_(step < wakes ? 0 : 1);
          return g;
        },
        [&](std::int64_t t, const Step& step) {
          at::Tensor still = dead.clone();
          still[6].fill_(t < 16);  // until the next mask
          EXPECT_TRUE(step.estimates[0].masked_select(still).eq(0).all().item<bool>()) << t;
          EXPECT_TRUE(step.estimates[0].masked_select(still.logical_not()).ne(0).all().item<bool>())
              << t;
          if (feedback && t == 15) {
            EXPECT_EQ(step.residuals[0][6].item<float>(), 6);
          }
        });
  }
}

TEST(OneBit, InABucketBoundInTheMiddleOfARunAllIsAlive) {
  for (const std::int64_t numel : {1, 32, 40, 4100}) {
    at::Tensor values = at::ones({numel});
    const auto gradients = {values, values};
    for (const std::int64_t step : {7, 8}) {
      EXPECT_TRUE(
          estimates_of(kOptions, one_slot({numel}), gradients, step)[0].equal(at::ones({numel})))
          << numel << " step " << step;
    }
  }
}

}  // namespace
}  // namespace abtrain::compress
