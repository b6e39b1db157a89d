#include "compress/plain.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "comm/meter.h"
#include "comm/run_workers.h"
#include "compress/gradient_exchange.h"
#include "compress/schemes.h"
#include "reducer_words.h"

namespace abtrain::compress {
namespace {

using comm::Communicator;
using comm::Purpose;

at::Tensor gradient_of(int rank, std::int64_t numel) {
  return at::randn({numel}, at::detail::createCPUGenerator(50 + rank), at::kFloat);
}

at::Tensor mean_of(int n, std::int64_t numel) {
  at::Tensor sum = at::zeros({numel}, at::kDouble);
  for (int i = 0; i < n; ++i) {
    sum += gradient_of(i, numel).to(at::kDouble);
  }
  return sum.div(static_cast<double>(n));
}

ReducerOptions plain(const std::string& dtype) {
  ReducerOptions options;
  set_option(options, "dtype", dtype);
  return options;
}

// One exchange of a buffer that is one slot.
void reduce(const ReducerOptions& options, const at::Tensor& flat, Communicator& group) {
  GradientExchange exchange(options, 1);
  exchange.bind({{"flat", 0, {flat.numel()}}}, flat, group);
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
      const at::Tensor wanted = mean_of(n, numel);
      std::vector<at::Tensor> results(n);
      comm::run_workers(n, 20, [&](Communicator& base) {
        comm::TrafficMeter meter;
        auto world = metered(base.split(0), "world", meter);
        const int rank = world->rank();
        const at::Tensor flat = gradient_of(rank, numel);
        reduce(plain(GetParam().dtype), flat, *world);
        EXPECT_EQ(
            meter.of("world", Purpose::Gradient).bytes,
            ExchangePlan(plain(GetParam().dtype), {{"flat", 0, {numel}}}, {n, rank}).usual_bytes());
        results[rank] = flat;
      });
      for (const at::Tensor& result : results) {
        EXPECT_TRUE(result.equal(results[0]));
        if (numel > 0) {
          const auto error = result.to(at::kDouble).sub(wanted).abs().max().item<double>();
          EXPECT_LE(error, GetParam().relative * wanted.abs().max().item<double>() * n);
        }
      }
    }
  }
}

TEST_P(Plain, BytesFollowTheDtype) {
  const auto reducer = make_reducer(plain(GetParam().dtype), 1);
  reducer->bind({{{{"flat", 0, {10, 100}}}}});
  EXPECT_EQ(reducer->volume({4, 0}, 0).bytes, 2 * 3 * 250 * GetParam().bytes);
  EXPECT_EQ(reducer->volume({1, 0}, 0).bytes, 0);
  EXPECT_EQ(reducer->volume({4, 0}, 0).payload_bits, 8 * 1000 * GetParam().bytes);
}

TEST_P(Plain, AGroupOfOneRoundsNothing) {
  comm::run_workers(1, 20, [](Communicator& world) {
    const at::Tensor flat = gradient_of(0, 999);
    reduce(plain(GetParam().dtype), flat, world);
    EXPECT_TRUE(flat.equal(gradient_of(0, 999)));
  });
}

TEST_P(Plain, ServesBuffersOfAnyLengthInTurn) {
  comm::run_workers(2, 20, [](Communicator& world) {
    GradientExchange exchange(plain(GetParam().dtype), 1);
    for (const std::int64_t numel : {10, 1000, 3, 0, 1001}) {
      const at::Tensor flat = at::full({numel}, world.rank() * 2.0f);
      exchange.bind({{"flat", 0, {numel}}}, flat, world);
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
