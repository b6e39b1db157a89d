#include "orders/coordination.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "comm/meter.h"
#include "comm/run_workers.h"

namespace abtrain::orders {
namespace {

at::Tensor randn(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat);
}

// What a message of the row stands for, in the space of the wire.
at::Tensor through(const DifferenceWire& wire, const at::Tensor& row) {
  const at::Tensor message = at::empty({wire.elements()}, at::TensorOptions(wire.format().type));
  wire.encode(row, {}, message);
  return wire.decode(message).to(at::kDouble);
}

// Sixths of the numbers, where parts of a gradient begin and end.
constexpr std::int64_t kCuts[] = {6, 3, 2, 0};

// Of x + 1 and 1, where the wire keeps the first one as whole items.
at::Tensor difference_of_kept(const DifferenceWire& wire, const at::Tensor& x) {
  if (!wire.format().keeps_messages) {
    return (x + 1) - 1;
  }
  const std::int64_t numel = x.numel();
  const std::int64_t n = wire.format().numbers;
  const at::Tensor kept = through(wire, x + 1).narrow(0, 0, numel).to(at::kFloat).clone();
  for (const std::int64_t sixth : kCuts) {
    const std::int64_t begin = sixth * numel / 6 / n * n;
    const std::int64_t end = std::min(numel, begin + n);
    if (sixth * numel / 6 % n != 0 && sixth < 6) {  // it is in two parts
      kept.narrow(0, begin, end - begin).copy_((x + 1).narrow(0, begin, end - begin));
    }
  }
  return kept - 1;
}

struct Case {
  OrderWire wire;
  int workers;
  std::int64_t numel;
  std::int64_t pairs;
};

class Decisions : public ::testing::TestWithParam<Case> {};

// Against the sequential rule in float64 on all workers' differences; all
// workers get the same signs; the meter counts what difference_bytes() says.
TEST_P(Decisions, AreThoseOfOneServer) {
  const auto [name, workers, numel, pairs] = GetParam();
  constexpr int kRounds = 5;
  OrderOptions options;
  options.name = "cd-grab";
  options.wire = name;
  const DifferenceWire wire(options, numel);
  std::vector<at::Tensor> rounds;
  for (std::uint64_t r = 0; r < kRounds; ++r) {
    rounds.push_back(randn({pairs, workers, numel}, r));
  }
  std::vector<int> exact;
  at::Tensor sum;
  for (const at::Tensor& round : rounds) {
    const at::Tensor rows = round.view({-1, numel});
    for (std::int64_t i = 0; i < rows.size(0); ++i) {
      const at::Tensor row =
          through(wire, pairs == 1 ? difference_of_kept(wire, rows[i]) : rows[i]);
      sum = sum.defined() ? sum : at::zeros_like(row);
      exact.push_back(at::dot(sum, row).item<double>() <= 0 ? 1 : -1);
      sum.add_(row, exact.back());
    }
  }
  std::vector<std::vector<int>> signs(static_cast<std::size_t>(workers));
  std::vector<at::Tensor> shares(static_cast<std::size_t>(workers));
  comm::run_workers(workers, 60, [&](comm::Communicator& world) {
    comm::TrafficMeter meter;
    const auto group = comm::metered(world, "world", meter);
    const auto own = static_cast<std::size_t>(world.rank());
    SignQueue decided;
    Coordination coordination(options, numel, pairs, at::kCPU, group.get(), decided);
    for (const at::Tensor& round : rounds) {
      // The worker's buffer is used again for each round.
      at::Tensor mine = round.select(1, world.rank()).clone();
      if (pairs == 1) {
        // In three parts, the last one first, as a backward pass has them.
        at::Tensor first = mine[0] + 1;
        at::Tensor second = at::ones_like(first);
        for (const bool kept : {true, false}) {
          at::Tensor& gradient = kept ? first : second;
          for (int k = 0; k < 3; ++k) {
            const std::int64_t begin = kCuts[k + 1] * numel / 6;
            const std::int64_t count = kCuts[k] * numel / 6 - begin;
            kept ? coordination.keep(gradient, begin, count)
                 : coordination.subtract(gradient, begin, count);
            gradient.narrow(0, begin, count).zero_();
          }
        }
        coordination.send();
      } else {
        coordination.send_rows(mine);
      }
      mine.zero_();
      coordination.advance();
    }
    coordination.finish();
    decided.take(true, [&](const std::vector<int>& some) {
      signs[own].insert(signs[own].end(), some.begin(), some.end());
    });
    shares[own] = coordination.sum().clone();
    EXPECT_EQ(
        meter.of(comm::Purpose::Orders).bytes,
        kRounds * difference_bytes(options, numel, pairs, workers, world.rank()));
    EXPECT_EQ(meter.training_bytes(), meter.of(comm::Purpose::Orders).bytes);
  });
  for (const auto& each : signs) {
    EXPECT_EQ(each, exact);
  }
  const at::Tensor together = at::cat(shares).to(at::kDouble);
  EXPECT_LT((together - sum).abs().max().item<double>(), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    OfWires, Decisions,
    ::testing::Values(
        Case{OrderWire::Fp32, 1, 50, 1}, Case{OrderWire::Fp32, 2, 2, 1},
        Case{OrderWire::Fp32, 3, 1000, 1}, Case{OrderWire::Fp32, 5, 999, 40},  // two runs of rows
        Case{OrderWire::Int8, 2, 100, 1},  // one worker has no share
        Case{OrderWire::Int8, 4, 5000, 1}, Case{OrderWire::Int8, 3, 3000, 4}),
    [](const auto& test) {
      return formatted(
          "{}_{}_{}_{}", name_of(test.param.wire), test.param.workers, test.param.numel,
          test.param.pairs);
    });

TEST(DifferenceBytes, AreAMessageLessTheOwnShareAndTheProducts) {
  OrderOptions options;
  // A quarter stays; 10 products in an all-reduce of chunks of 2, 3, 2, 3.
  EXPECT_EQ(difference_bytes(options, 1000, 1, 4, 0), 3000 + (8 + 6) * 4);
  EXPECT_EQ(difference_bytes(options, 1000, 1, 4, 1), 3000 + (7 + 9) * 4);
  options.wire = OrderWire::Int8;
  EXPECT_EQ(difference_bytes(options, 1024, 1, 4, 0), 3 * 260 + 56);
  EXPECT_EQ(difference_bytes(options, 1 << 20, 1, 1, 0), 0);
}

TEST(Coordination, BeginsAnewAfterReset) {
  SignQueue decided;
  Coordination one({}, 4, 1, at::kCPU, nullptr, decided);
  const at::Tensor row = at::ones({4});
  const auto send = [&] {
    one.keep(row, 0, 4);
    one.subtract(at::zeros({4}), 0, 4);
    one.send();
  };
  send();
  send();
  one.sum().zero_();
  EXPECT_EQ(one.sum().abs().sum().item<double>(), 0);
  send();
  std::vector<int> signs;
  decided.take(true, [&](const std::vector<int>& some) {
    signs.insert(signs.end(), some.begin(), some.end());
  });
  EXPECT_EQ(signs, (std::vector<int>{1, -1, 1}));
}

}  // namespace
}  // namespace abtrain::orders
