#include "orders/balancer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "comm/run_workers.h"

namespace abtrain::orders {
namespace {

using Order = std::vector<std::int64_t>;

OrderOptions options_of(const std::string& name, OrderWire wire = OrderWire::Fp32) {
  OrderOptions options;
  options.name = name;
  options.wire = wire;
  return options;
}

Order ascending(std::int64_t count) {
  Order order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// One worker's units with gradients that stay the same.
struct Worker {
  Worker(
      const OrderOptions& options, const at::Tensor& all, comm::Communicator* group,
      std::int64_t first_place = 0)
      : gradients(all),
        published(ascending(all.size(0)), 1),
        balancer(options, 0, published),
        buffer(at::empty({all.size(1)})),
        place(first_place) {
    balancer.start(0, first_place);
    balancer.bind(all.size(1), at::kCPU, group);
  }
  // As a training does it: the same buffer holds every gradient, and the mean
  // of the workers' afterwards.
  void step() {
    buffer.copy_(gradients[published.epoch(epoch)[place]]);
    const std::int64_t half = buffer.numel() / 2;
    balancer.see(buffer, half, buffer.numel() - half);
    balancer.see(buffer, 0, half);
    buffer.fill_(1e6);
    balancer.step(buffer);
    if (++place == static_cast<std::size_t>(gradients.size(0))) {
      place = 0;
      ++epoch;
    }
  }
  void run_epoch() {
    do {
      step();
    } while (place > 0);
  }

  at::Tensor gradients;  // units x numel
  data::PublishedOrder published;
  Balancer balancer;
  at::Tensor buffer;
  std::size_t place;
  std::int64_t epoch = 0;
};

// The specification's golden integers, of workers that talk.
TEST(Balancer, GivesTheOrdersOfTheWorkedExample) {
  const at::Tensor gradients =
      at::tensor(
          {3, 1, -2, 4, 5, -1, 0, -3, -4, 2, 1, 1, -1, 2, 2, 2, -3, -3, 4, 0, 1, -5, 0, 2},
          at::kFloat)
          .view({2, 6, 2});
  const Order expected[3][2] = {
      {{0, 3, 4, 5, 2, 1}, {0, 3, 5, 4, 2, 1}},
      {{0, 5, 1, 2, 4, 3}, {0, 4, 2, 1, 5, 3}},
      {{0, 2, 4, 3, 1, 5}, {0, 2, 3, 5, 1, 4}}};
  comm::run_workers(2, 60, [&](comm::Communicator& world) {
    Worker worker(options_of("cd-grab"), gradients[world.rank()], &world);
    for (int epoch = 0; epoch < 3; ++epoch) {
      worker.run_epoch();
      EXPECT_EQ(worker.published.epoch(epoch + 1), expected[epoch][world.rank()]);
    }
  });
}

TEST(Balancer, AllWorkersUseTheSameSigns) {
  constexpr int kWorkers = 5;
  const at::Tensor gradients =
      at::randn({kWorkers, 21, 600}, at::detail::createCPUGenerator(2), at::kFloat);
  std::vector<std::vector<int>> signs(kWorkers);
  comm::run_workers(kWorkers, 60, [&](comm::Communicator& world) {
    Worker worker(options_of("cd-grab", OrderWire::Int8), gradients[world.rank()], &world);
    worker.balancer.watch_signs = [&](const std::vector<int>& some) {
      auto& own = signs[static_cast<std::size_t>(world.rank())];
      own.insert(own.end(), some.begin(), some.end());
    };
    for (int epoch = 0; epoch < 3; ++epoch) {
      worker.run_epoch();
      Order sorted = worker.published.epoch(epoch + 1);
      std::ranges::sort(sorted);
      EXPECT_EQ(sorted, ascending(21));
    }
  });
  EXPECT_EQ(signs[0].size(), 3u * 10 * kWorkers);
  for (const auto& each : signs) {
    EXPECT_EQ(each, signs[0]);
  }
}

// GraB by hand: g - m with m = 0 in the first epoch, then the epoch's mean.
TEST(Balancer, GrabBalancesAroundTheMeanOfTheEpochBefore) {
  const at::Tensor gradients = at::randn({9, 4}, at::detail::createCPUGenerator(4), at::kFloat);
  Worker worker(options_of("grab"), gradients, nullptr);
  Order order = ascending(9);
  at::Tensor mean = at::zeros({4}, at::kDouble);
  for (int epoch = 0; epoch < 4; ++epoch) {
    at::Tensor sum = at::zeros({4}, at::kDouble);
    Order early;
    Order late;
    for (const std::int64_t u : order) {
      const at::Tensor centered = gradients[u].to(at::kDouble) - mean;
      const bool plus = sum.dot(centered).item<double>() <= 0;
      sum.add_(centered, plus ? 1 : -1);
      if (plus) {
        early.push_back(u);
      } else {
        late.insert(late.begin(), u);
      }
    }
    early.insert(early.end(), late.begin(), late.end());
    order = early;
    mean = gradients.to(at::kDouble).mean(0);
    worker.run_epoch();
    EXPECT_EQ(worker.published.epoch(epoch + 1), order) << epoch;
  }
}

// A pair that lost its first gradient keeps its order, and S is 0 again.
TEST(Balancer, ForgetsWhereOtherParametersAreTrained) {
  const at::Tensor gradients = at::tensor({1, 0, 1, 2, 2, 0, 1, 0}, at::kFloat).view({8, 1});
  Worker worker(options_of("id-grab"), gradients, nullptr);
  for (int k = 0; k < 5; ++k) {
    worker.step();  // D = 1: +, S = 1; D = -1: +, S = 0; then 2
  }
  worker.balancer.bind(1, at::kCPU, nullptr);
  worker.step();
  worker.step();
  worker.step();  // D = 1: +
  EXPECT_EQ(worker.published.epoch(1), (Order{0, 2, 4, 6, 7, 5, 3, 1}));
}

TEST(Balancer, GoesOnFromACheckpointInTheMiddleOfAPair) {
  for (const char* name : {"grab", "id-grab", "cd-grab"}) {
    const at::Tensor gradients =
        at::randn({2, 11, 5}, at::detail::createCPUGenerator(6), at::kFloat);
    for (const int stop : {4, 5, 11, 16}) {
      comm::run_workers(2, 60, [&](comm::Communicator& world) {
        const at::Tensor own = gradients[world.rank()];
        Worker whole(options_of(name), own, &world);
        for (int k = 0; k < stop; ++k) {
          whole.step();
        }
        whole.balancer.settle();
        state::State state;
        state::Archive saving = state::Archive::saving(state);
        whole.balancer.archive(saving);
        for (auto& [key, tensor] : state.own) {
          tensor = tensor.clone();
        }
        data::PublishedOrder published(ascending(11), 1);
        Balancer other(options_of(name), 0, published);
        other.bind(5, at::kCPU, &world);
        state::Archive loading = state::Archive::loading(state);
        other.archive(loading);
        for (int k = stop; k < 33; ++k) {
          const std::int64_t epoch = k / 11;
          const std::int64_t unit = whole.published.epoch(epoch)[static_cast<std::size_t>(k % 11)];
          ASSERT_EQ(published.epoch(epoch), whole.published.epoch(epoch));
          other.step(own[unit]);
          whole.step();
        }
        EXPECT_EQ(published.epoch(3), whole.published.epoch(3));
      });
    }
  }
}

TEST(Balancer, StartsInTheMiddleOfAnEpoch) {
  const at::Tensor gradients = at::zeros({6, 1});
  Worker worker(options_of("id-grab"), gradients, nullptr, 3);
  for (int k = 3; k < 6; ++k) {
    worker.step();
  }
  EXPECT_EQ(worker.published.epoch(1), (Order{0, 2, 4, 5, 3, 1}));
}

// Gradients of a batch at once give the orders of single units.
TEST(Balancer, DecidesOnBatchesAsOnSingleUnits) {
  const at::Tensor gradients = at::randn({2, 24, 7}, at::detail::createCPUGenerator(8), at::kFloat);
  for (const char* name : {"grab", "id-grab", "cd-grab"}) {
    comm::run_workers(2, 60, [&](comm::Communicator& world) {
      const at::Tensor own = gradients[world.rank()];
      Worker single(options_of(name), own, &world);
      data::PublishedOrder published(ascending(24), 1);
      Balancer batches(options_of(name), 8, published);
      batches.start(0, 0);
      batches.bind(7, at::kCPU, &world);
      for (int epoch = 0; epoch < 3; ++epoch) {
        const Order now = published.epoch(epoch);
        EXPECT_EQ(now, single.published.epoch(epoch)) << name;
        for (std::int64_t k = 0; k < 24; k += 8) {
          batches.step(
              BuiltGradients(own.index_select(0, at::tensor(now, at::kLong).narrow(0, k, 8))));
        }
        single.run_epoch();
      }
      EXPECT_EQ(published.epoch(3), single.published.epoch(3)) << name;
    });
  }
}

constexpr std::int64_t kHerdingWorkers = 64;
constexpr std::int64_t kHerdingUnits = 250;
constexpr std::int64_t kHerdingNumel = 16;

at::Tensor unit_vectors() {
  const at::Tensor vectors = at::randn(
      {kHerdingWorkers, kHerdingUnits, kHerdingNumel}, at::detail::createCPUGenerator(1),
      at::kFloat);
  return vectors / vectors.norm(2, {2}, true);
}

// The largest component of a prefix sum over the workers' steps, of vectors
// less their mean.
double herding(const at::Tensor& vectors, const std::vector<Order>& orders) {
  at::Tensor steps = at::zeros({kHerdingUnits, kHerdingNumel}, at::kDouble);
  for (std::int64_t j = 0; j < kHerdingWorkers; ++j) {
    steps.add_(vectors[j]
                   .index_select(0, at::tensor(orders[static_cast<std::size_t>(j)], at::kLong))
                   .to(at::kDouble));
  }
  steps.sub_(steps.mean(0));
  return steps.cumsum(0).abs().max().item<double>();
}

// Of the orders after ten rounds. `stale`: what a unit's gradient is taken from
// is overwritten before it is used, as by the mistake of keeping a reference to
// a buffer that the next step writes to.
double herding_of(const OrderOptions& options, int rounds, bool stale = false) {
  const at::Tensor vectors = unit_vectors();
  std::vector<Order> orders(kHerdingWorkers);
  comm::run_workers(kHerdingWorkers, 300, [&](comm::Communicator& world) {
    const at::Tensor own = vectors[world.rank()];
    Worker worker(options, own, &world);
    for (int round = 0; round < rounds; ++round) {
      if (!stale) {
        worker.run_epoch();
        continue;
      }
      const Order now = worker.published.epoch(round);
      for (std::int64_t k = 0; k < kHerdingUnits; ++k) {
        const std::int64_t last = std::min(k | 1, kHerdingUnits - 1);
        worker.balancer.step(own[now[static_cast<std::size_t>(last)]]);
      }
    }
    orders[static_cast<std::size_t>(world.rank())] = worker.published.epoch(rounds);
  });
  return herding(vectors, orders);
}

// The specification's gate: random unit vectors, ten rounds. Without a round
// the order is that of the vectors, random ones.
TEST(Herding, IsSmallWhereWorkersCoordinate) {
  for (const OrderWire wire : {OrderWire::Fp32, OrderWire::Int8}) {
    const double together = herding_of(options_of("cd-grab", wire), 10);
    EXPECT_LE(together, 3);
    RecordProperty(formatted("cd-grab {}", name_of(wire)), formatted("{}", together));
  }
  const double alone = herding_of(options_of("id-grab"), 10);
  const double shuffled = herding_of(options_of("id-grab"), 0);
  EXPECT_GE(alone, 10);
  EXPECT_GE(shuffled, 30);
  RecordProperty("id-grab", formatted("{}", alone));
  RecordProperty("shuffled", formatted("{}", shuffled));
}

// The gate sees the mistake: every difference is 0 then.
TEST(Herding, IsLargeWhereABufferIsUsedAgainTooEarly) {
  EXPECT_GT(herding_of(options_of("cd-grab"), 3, /*stale=*/true), 10);
}

}  // namespace
}  // namespace abtrain::orders
