#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <numbers>

#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

class Sparse : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Schemes, Sparse, ::testing::Values("topk", "topk-chunked"),
    [](const auto& test) { return std::string(test.param) == "topk" ? "topk" : "chunked"; });

// fp16 before the sum, as in a plain fp16 all-reduce; topk alone adds up in
// fp32, so that it is rounded here.
TEST_P(Sparse, IsPlainFp16AtFullBits) {
  const ReducerOptions plain = options_of("plain", {{"dtype", "fp16"}});
  const std::string full = std::string(GetParam()) == "topk" ? "48" : "64";
  for (const int n : {2, 3, 8}) {
    for (const std::int64_t numel : {1, 77, 5001}) {
      at::Tensor wanted;
      run_steps(
          plain, one_slot({numel}), n, 1, normal_gradients(numel, 0.3),
          [&](std::int64_t, const Step& step) { wanted = step.estimates[0]; });
      run_steps(
          scheme(GetParam(), {{"bits", full}}), one_slot({numel}), n, 1,
          normal_gradients(numel, 0.3), [&](std::int64_t, const Step& step) {
            EXPECT_TRUE(step.estimates[0].to(at::kHalf).to(at::kFloat).equal(wanted))
                << numel << " x " << n;
          });
    }
  }
}

// Two tensors that are not neighbors in the buffer, the second after a third
// one that is too small: the same as if they lay together.
TEST_P(Sparse, TakesTensorsThatLieApart) {
  const ReducerOptions one = options_of(GetParam(), {{"min_numel", "100"}, {"dtype", "fp32"}});
  for (const std::int64_t first : {640, 1000}) {
    const std::int64_t numel = first + 1000;
    const std::vector<Slot> apart = {
        {"a", 0, {first}, 0}, {"b", first, {7}, 1}, {"c", first + 7, {1000}, 2}};
    const auto gradient_of = normal_gradients(numel);
    at::Tensor wanted;
    run_steps(one, one_slot({numel}), 3, 3, gradient_of, [&](auto, const Step& step) {
      wanted = step.estimates[0];
    });
    run_steps(
        one, apart, 3, 3,
        [&](int worker, std::int64_t t) {
          const at::Tensor g = gradient_of(worker, t);
          return at::cat(
              {g.narrow(0, 0, first), at::full({7}, worker * 1.0f), g.narrow(0, first, 1000)});
        },
        [&](std::int64_t t, const Step& step) {
          const at::Tensor& got = step.estimates[0];
          EXPECT_TRUE(got.narrow(0, first, 7).eq(1).all().item<bool>());
          if (t == 2) {
            EXPECT_TRUE(
                at::cat({got.narrow(0, 0, first), got.narrow(0, first + 7, 1000)}).equal(wanted))
                << first;
          }
        });
  }
}

// Of normal numbers the share of energy above t is 2 (t phi(t) + Q(t)) where
// the share of numbers above it is 2 Q(t). What n workers leave out is
// independent, as their gradients are: the error shrinks as the mean does.
TEST(Topk, LeavesOutWhatNormalNumbersHaveBelowTheThreshold) {
  for (const double bits : {0.5, 2.0, 8.0}) {
    const double share = bits / 48;
    double low = 0, high = 10;
    for (int i = 0; i < 60; ++i) {
      const double t = (low + high) / 2;
      (std::erfc(t / std::numbers::sqrt2) > share ? low : high) = t;
    }
    const double density = std::exp(-low * low / 2) / std::sqrt(2 * std::numbers::pi);
    const double wanted = 1 - (2 * low * density + std::erfc(low / std::numbers::sqrt2));
    ReducerOptions options = scheme("topk");
    options.bits = bits;
    for (const int n : {2, 4}) {
      const double got = vnmse(options, one_slot({100000}), n, normal_gradients(100000));
      EXPECT_NEAR(got / wanted, 1, 0.05) << bits << " bits, " << n;
    }
  }
}

// A rounding error is uniform between two neighbors, which lie 2^-10 times the
// next lower power of two apart. One worker has all, so that what is summed up
// has been rounded once and the sum is not.
TEST(PlainFp16, HasTheRoundingErrorOfNormalNumbers) {
  const ReducerOptions options = options_of("plain", {{"dtype", "fp16"}});
  for (const int n : {2, 3, 4}) {
    const double sigma = 1.0 / n;
    double mean = 0;  // of the square of that power of two
    for (int e = -40; e < 8; ++e) {
      const double probability = std::erfc(std::exp2(e) / sigma / std::numbers::sqrt2) -
                                 std::erfc(std::exp2(e + 1) / sigma / std::numbers::sqrt2);
      mean += std::exp2(2 * e) * probability;
    }
    const double wanted = std::exp2(-22) / 3 * mean / (sigma * sigma);
    const auto normal = normal_gradients(100000);
    const double got = vnmse(options, one_slot({100000}), n, [&](int worker, std::int64_t t) {
      return worker == 0 ? normal(0, t) : at::zeros({100000});
    });
    EXPECT_NEAR(got / wanted, 1, 0.05) << n;
  }
}

TEST(Topk, TakesTheLargestAndOfEqualOnesTheFirst) {
  run_steps(
      scheme("topk", {{"bits", "18"}}), one_slot({8}), 2, 1,  // 3 of 8
      [](int worker, std::int64_t) {
        return worker == 0 ? at::tensor({1.f, -8.f, 2.f, 4.f, -4.f, 4.f, 0.f, 1.f})
                           : at::tensor({2.f, 2.f, 2.f, 2.f, 2.f, 2.f, 2.f, 2.f});
      },
      [](auto, const Step& step) {
        EXPECT_TRUE(
            step.estimates[0].equal(at::tensor({1.f, -3.f, 1.f, 2.f, -2.f, 0.f, 0.f, 0.f})));
        EXPECT_TRUE(step.residuals[0].equal(at::tensor({1.f, 0.f, 2.f, 0.f, 0.f, 4.f, 0.f, 1.f})));
      });
}

// The chunk that all workers together have most in, though none has most there.
TEST(TopkChunked, TakesTheChunksOfLargestSums) {
  ReducerOptions options = scheme("topk-chunked");
  options.chunk = 4;
  options.bits = 4 + 16.0 * 4 / 14;  // one chunk of the 4
  const auto gradient_of = [](int worker, std::int64_t) {
    at::Tensor g = at::full({14}, 0.25f);
    g[worker == 0 ? 1 : 9] = 4;  // 16.2 in one, 0.25 in the other
    g[13] = -3;                  // 9.1 in both, of a chunk of two
    return g;
  };
  run_steps(options, one_slot({14}), 2, 1, gradient_of, [](auto, const Step& step) {
    at::Tensor wanted = at::zeros({14});
    wanted[12] = 0.25f;
    wanted[13] = -3;
    EXPECT_TRUE(step.estimates[0].equal(wanted)) << step.estimates[0];
  });
  options.bits += 16.0 * 4 / 14;  // two: the chunks 0 and 2 are equal
  run_steps(options, one_slot({14}), 2, 1, gradient_of, [](auto, const Step& step) {
    EXPECT_EQ(step.estimates[0][1].item<float>(), 2.125f);
    EXPECT_EQ(step.estimates[0][9].item<float>(), 0);
    EXPECT_EQ(step.residuals[1][9].item<float>(), 4);
  });
}

// Squares of such numbers are below what fp16 holds.
TEST(TopkChunked, FindsTheLargestAmongSmallNumbers) {
  run_steps(
      scheme("topk-chunked"), one_slot({6400}), 2, 1,
      [](int, std::int64_t) {
        at::Tensor g = at::full({6400}, 1e-6f);
        g.narrow(0, 6336, 64).fill_(1e-5f);
        return g;
      },
      [](auto, const Step& step) {
        EXPECT_NEAR(step.estimates[0][6399].item<float>(), 1e-5, 1e-6);
      });
}

TEST(TopkChunked, BytesAreThoseOfTheFormula) {
  const auto payload = [](const std::string& bits, std::int64_t numel) {
    const ReducerOptions options = scheme("topk-chunked", {{"bits", bits}});
    const Volume sent = volume_of(options, one_slot({numel}), {4, 1});
    EXPECT_EQ(sent.bytes, 2 * 3 * sent.payload_bits / 32);
    return sent.payload_bits;
  };
  // 16/64 for norms; (2 - 16/64) / 16 of the numbers, in whole chunks.
  EXPECT_EQ(payload("2", 64 * 1024), 16 * 1024 + 16 * 64 * 112);
  // The last chunk is filled up.
  EXPECT_EQ(payload("64", 64 * 3 + 1), 16 * 4 + 16 * 64 * 4);
  EXPECT_EQ(payload("0.5", 128 * 1024), 16 * 1024 + 16 * 128 * 24);
}

TEST(Topk, BytesAreThoseOfTheFormula) {
  const auto volume = [](std::int64_t numel) {
    return volume_of(scheme("topk"), one_slot({numel}), {4, 1});
  };
  EXPECT_EQ(volume(24 * 1000).payload_bits, 48 * 1000);
  EXPECT_EQ(volume(24 * 1000).bytes, 3 * 6 * 1000);
  // An odd number of values is filled up to whole places.
  EXPECT_EQ(volume(24 * 5).bytes, 3 * 32);
}

}  // namespace
}  // namespace abtrain::compress
