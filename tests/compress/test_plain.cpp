#include "compress/plain.h"

#include <ATen/ops/full.h>

#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

using comm::Communicator;
using comm::Purpose;

at::Tensor gradient_of(int rank, std::int64_t numel) {
  return at::randn({numel}, at::detail::createCPUGenerator(50 + rank), at::kFloat);
}

ReducerOptions plain(const std::string& dtype) {
  return options_of("plain", {{"dtype", dtype}});
}

// One exchange of a buffer that is one slot.
void reduce(const ReducerOptions& options, const at::Tensor& flat, Communicator& group) {
  GradientExchange exchange(options, 1);
  exchange.bind(one_slot({flat.numel()}), flat, group);
  exchange.finish(0);
}

struct Case {
  const char* dtype;
  std::int64_t bytes;  // an element on the wire
  double relative;     // error that rounding may leave, against the largest
};

class Plain : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Dtypes, Plain,
    ::testing::Values(
        Case{"fp32", 4, 3e-7}, Case{"fp16", 2, 1.0 / 1024}, Case{"bf16", 2, 1.0 / 128}),
    [](const auto& test) { return std::string(test.param.dtype); });

TEST_P(Plain, GivesTheMeanAndTheBytesThatItSays) {
  for (const int n : {1, 2, 3, 8}) {
    for (const std::int64_t numel : {0, 1, 1001, 150001}) {
      run_steps(
          plain(GetParam().dtype), one_slot({numel}), n, 1,
          [&](int worker, std::int64_t) { return gradient_of(worker, numel); },
          [&](std::int64_t, const Step& step) {
            if (numel > 0) {
              const at::Tensor error = step.estimates[0].to(at::kDouble).sub(step.mean()).abs();
              const auto largest = step.mean().abs().max().item<double>();
              EXPECT_LE(error.max().item<double>(), GetParam().relative * largest * n);
            }
          });
    }
  }
}

TEST_P(Plain, BytesFollowTheDtype) {
  const auto volume = [](int members) {
    return volume_of(plain(GetParam().dtype), one_slot({10, 100}), {members, 0});
  };
  EXPECT_EQ(volume(4).bytes, 2 * 3 * 250 * GetParam().bytes);
  EXPECT_EQ(volume(1).bytes, 0);
  EXPECT_EQ(volume(4).payload_bits, 8 * 1000 * GetParam().bytes);
}

TEST_P(Plain, ServesBuffersOfAnyLengthInTurn) {
  comm::run_workers(2, 20, [](Communicator& world) {
    GradientExchange exchange(plain(GetParam().dtype), 1);
    for (const std::int64_t numel : {10, 1000, 3, 0, 1001}) {
      const at::Tensor flat = at::full({numel}, world.rank() * 2.0f);
      exchange.bind(one_slot({numel}), flat, world);
      exchange.finish(0);
      EXPECT_TRUE(flat.equal(at::full({numel}, 1.0f))) << numel;
    }
  });
}

TEST(PlainAverage, OfAFlatBufferHasTheBitsOfTheReducer) {
  for (const auto& [dtype, wire] :
       {std::pair("fp32", at::kFloat), std::pair("fp16", at::kHalf),
        std::pair("bf16", at::kBFloat16)}) {
    comm::run_workers(3, 20, [&](Communicator& world) {
      const at::Tensor wanted = gradient_of(world.rank(), 1001);
      const at::Tensor flat = wanted.clone();
      reduce(plain(dtype), wanted, world);
      average(flat, world, Purpose::Sync, wire);
      EXPECT_TRUE(flat.equal(wanted)) << dtype;
    });
  }
}

TEST(PlainFp16, DividesBeforeTheCast) {
  comm::run_workers(4, 20, [](Communicator& world) {
    // Above the largest fp16, 65504; a quarter of it is exact.
    const at::Tensor flat = at::full({5}, 131072.0f);
    reduce(plain("fp16"), flat, world);
    EXPECT_FALSE(flat.isfinite().all().item<bool>());
    const at::Tensor less = at::full({5}, 65536.0f * (world.rank() == 0));
    reduce(plain("fp16"), less, world);
    EXPECT_TRUE(less.equal(at::full({5}, 16384.0f)));
  });
}

}  // namespace
}  // namespace abtrain::compress
