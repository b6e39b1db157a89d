#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

#include "compress/code_schemes.h"

namespace abtrain::compress {
namespace {

constexpr double kT = 3.2971933456919635;

ReducerOptions thc(const std::string& rotation = "block") {
  return scheme("thc", {{"rotation", rotation}});
}

TEST(Thc, SumsOfMoreThan17MembersTakeWiderLanes) {
  for (const int n : {17, 18}) {
    check_conservation(thc(), one_slot({1300}), n);
    // Two blocks of 1,024: a byte a number, or two numbers in 32 bits.
    EXPECT_EQ(
        all_bytes(thc(), one_slot({1300}), n), 2 * (n - 1) * (2 * 4 + 2048 * (n > 17 ? 2 : 1)));
  }
  // All of them at the upper end of the range: a sum of 15 n.
  run_steps(
      thc("none"), one_slot({1024}), 18, 1,
      [](int, std::int64_t) {
        at::Tensor g = at::zeros({1024});
        g[0] = 1;
        return g;
      },
      [](std::int64_t, const Step& step) {
        EXPECT_NEAR(step.estimates[0][0].item<double>(), kT / 32, 1e-6);
      });
}

// The error of one number of standard deviation 1 in steps of delta = 2 a / 15
// within +- a: its rounding's variance, or what is beyond the range.
double expected_error(double a) {
  const double delta = 2 * a / 15;
  constexpr int kSteps = 20000;
  double sum = 0;
  double weight = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double x = -8 + 16.0 * i / kSteps;
    const double density = std::exp(-x * x / 2);
    const double place = (x + a) / delta;
    const double up = place - std::floor(place);
    const double beyond = std::abs(x) - a;
    sum += density * (beyond > 0 ? beyond * beyond : delta * delta * up * (1 - up));
    weight += density;
  }
  return sum / weight;
}

TEST(Thc, HasTheErrorOfItsClosedForm) {
  // About delta^2 / 6, and a little beyond the range.
  const double delta = 2 * kT / 15;
  EXPECT_NEAR(expected_error(kT), delta * delta / 6, 0.01 * delta * delta);
  for (const std::string rotation : {"block", "full", "none"}) {
    for (const int n : {2, 4, 18}) {
      const std::int64_t numel = 1 << 16;
      const std::int64_t block = rotation == "full" ? numel : 1024;
      run_steps(
          thc(rotation), one_slot({numel}), n, 1, normal_gradients(numel),
          [&](std::int64_t, const Step& step) {
            // Block by block: its range is the largest norm's.
            at::Tensor norms = at::zeros({n, numel / block}, at::kDouble);
            for (int i = 0; i < n; ++i) {
              norms[i] = step.gradients[static_cast<std::size_t>(i)]
                             .to(at::kDouble)
                             .view({-1, block})
                             .square()
                             .sum(1)
                             .sqrt();
            }
            double wanted = 0;
            for (std::int64_t b = 0; b < numel / block; ++b) {
              const at::Tensor own = norms.select(1, b);
              const auto largest = own.max().item<double>();
              for (int i = 0; i < n; ++i) {
                const auto norm = own[i].item<double>();
                wanted += norm * norm * expected_error(kT * largest / norm) / n / n;
              }
              if (b == 15) {
                wanted *= static_cast<double>(numel) / (16.0 * block);
                break;  // enough of them for the mean
              }
            }
            const auto error =
                step.estimates[0].to(at::kDouble).sub(step.mean()).square().sum().item<double>();
            EXPECT_NEAR(error / wanted, 1, 0.05) << rotation << " " << n;
          });
    }
  }
}

TEST(Thc, MembersRoundIndependentlyOfEachOther) {
  // All have the same gradient: only the roundings differ, so that their
  // errors average out.
  const std::int64_t numel = 1 << 15;
  for (const int n : {2, 8}) {
    const double error = vnmse(thc(), one_slot({numel}), n, [&](int, std::int64_t) {
      return normal_gradients(numel)(0, 7);
    });
    EXPECT_NEAR(error * n / expected_error(kT), 1, 0.06) << n;
  }
}

TEST(Thc, SignsAndRoundingsChangeWithTheStepAndTheSeed) {
  ReducerOptions options = thc();
  options.error_feedback = false;
  const std::int64_t numel = 4096;
  const auto same = [&](int worker, std::int64_t) { return normal_gradients(numel)(worker, 0); };
  at::Tensor first;
  at::Tensor sum = at::zeros({numel}, at::kDouble);
  at::Tensor mean;
  constexpr int kSteps = 64;
  run_steps(options, one_slot({numel}), 2, kSteps, same, [&](std::int64_t t, const Step& step) {
    if (t == 1) {
      EXPECT_GT(step.estimates[0].ne(first).sum().item<std::int64_t>(), numel * 9 / 10);
    }
    first = step.estimates[0];
    sum.add_(step.estimates[0].to(at::kDouble));
    mean = step.mean();
  });
  // The errors of the steps are independent and have no mean but the
  // clipping's.
  EXPECT_LT(vnmse_of(sum.div(kSteps), mean), 1.5 * expected_error(kT) / kSteps);
}

// Gradients of the first layer of a small network, of a batch a worker: columns
// of dead inputs and rows of very different sizes.
GradientOf network_gradients() {
  return [](int worker, std::int64_t step) {
    const auto draw = [](std::vector<std::int64_t> sizes, std::uint64_t seed) {
      return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat);
    };
    const std::int64_t in = 256;
    const std::int64_t hidden = 128;
    const at::Tensor scales = draw({in}, 1).mul(1.5).exp();
    const at::Tensor w1 = draw({hidden, in}, 2).mul(0.05);
    const at::Tensor w2 = draw({10, hidden}, 3).mul(0.3);
    const auto seed = static_cast<std::uint64_t>(100 + 1000 * step + worker);
    const at::Tensor x = at::relu(draw({32, in}, seed)).mul(scales);
    const at::Tensor label = at::softmax(at::matmul(x, draw({in, 10}, 4)), 1);
    const at::Tensor z = at::matmul(x, w1.t());
    const at::Tensor p = at::softmax(at::matmul(at::relu(z), w2.t()), 1);
    const at::Tensor back = at::matmul(p.sub(label), w2).mul(z.gt(0));
    return at::matmul(back.t(), x).div(32).reshape({-1}).contiguous();
  };
}

TEST(Thc, BlocksAreAsGoodAsAFullRotationAndNoneIsMuchWorse) {
  const std::int64_t numel = 128 * 256;
  const auto of = [&](const std::string& rotation) {
    return vnmse(thc(rotation), one_slot({numel}), 4, network_gradients());
  };
  const double block = of("block");
  const double full = of("full");
  const double none = of("none");
  RecordProperty("block", std::to_string(block));
  RecordProperty("full", std::to_string(full));
  RecordProperty("none", std::to_string(none));
  EXPECT_LT(block, 2 * full);
  EXPECT_LT(full, 0.1);
  EXPECT_GT(none, 5 * block);
}

TEST(Thc, EachBlockHasItsOwnRange) {
  // One block a thousand times as large as the others: with one range for all,
  // nothing of these would be left.
  const std::int64_t numel = 16384;
  run_steps(
      thc(), one_slot({numel}), 2, 1,
      [&](int worker, std::int64_t step) {
        const at::Tensor g = normal_gradients(numel)(worker, step);
        g.narrow(0, 0, 1024).mul_(1000);
        return g;
      },
      [&](std::int64_t, const Step& step) {
        const auto small = [&](const at::Tensor& x) { return x.narrow(0, 1024, numel - 1024); };
        EXPECT_LT(vnmse_of(small(step.estimates[0]), small(step.mean())), 0.05);
      });
}

// In the whole of its block, on all workers; a step that is left out then has
// left nothing behind.
TEST(Thc, WhatIsNotFiniteShowsInTheEstimate) {
  std::vector<ReducerOptions> all = {
      thc("block"), thc("full"), thc("none"), scheme("thc-saturated")};
  for (const ReducerOptions& options : all) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(),
          1e30F}) {  // its square is not finite
      comm::run_workers(3, 60, [&](comm::Communicator& world) {
        const at::Tensor flat = at::zeros({3000});
        GradientExchange exchange(options, 5);
        exchange.bind(one_slot({3000}), flat, world);
        for (std::int64_t t = 0; t < 2; ++t) {
          flat.copy_(normal_gradients(3000)(world.rank(), t));
          if (world.rank() == 1 && t == 0) {
            flat[1500] = bad;
          }
          exchange.finish(t);
          EXPECT_TRUE(joined(state_of(exchange), "residual.").isfinite().all().item<bool>()) << bad;
          const at::Tensor block = flat.narrow(0, 1024, 1024);
          if (t == 0) {
            EXPECT_TRUE(block.isnan().all().item<bool>()) << bad;
          }
          if (t == 1 || options.rotation == Rotation::Block) {
            EXPECT_TRUE(flat.narrow(0, 0, 1024).isfinite().all().item<bool>());
          }
          EXPECT_EQ(block.isfinite().all().item<bool>(), t == 1) << bad;
        }
      });
    }
  }
}

TEST(Thc, BytesFollowTheFormula) {
  for (const std::string rotation : {"block", "none", "full"}) {
    for (const std::int64_t numel : {1, 1024, 70001}) {
      const auto slots = one_slot({numel});
      const std::int64_t padded = (numel + 1023) / 1024 * 1024;
      // 70001: 69 blocks are pieces of 65536, 4096 and 1024.
      const std::int64_t ranges = rotation != "full" ? padded / 1024 : numel == 70001 ? 3 : 1;
      for (const int n : {1, 2, 3, 8}) {
        EXPECT_EQ(all_bytes(thc(rotation), slots, n), 2 * (n - 1) * (4 * ranges + padded))
            << rotation;
      }
      EXPECT_EQ(volume_of(thc(rotation), slots).payload_bits, 32 * ranges + 8 * padded);
    }
  }
}

TEST(Thc, ServesEveryBlockSize) {
  for (const std::int64_t block : {2, 16, 128, 4096, 32768}) {
    SCOPED_TRACE(block);
    check_conservation(scheme("thc", {{"block", std::to_string(block)}}), one_slot({5000}), 2);
  }
}

}  // namespace
}  // namespace abtrain::compress
