// Measures how well orders keep prefix sums of gradients small, round by round.
// Each worker has a row of random unit vectors that stay the same; the bound is
// the largest component, over all k, of the sum over the workers' first k
// vectors less their mean ("herding", Cooper et al., arXiv 2302.00845, figure
// 1).
//   bench_herding [--workers N] [--units N] [--numel N] [--rounds N] [--json]
// The balancers are those of a training run, on worker threads that
// communicate.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "arguments.h"
#include "base/error.h"
#include "base/random.h"
#include "comm/run_workers.h"
#include "data/order.h"
#include "orders/balancer.h"

namespace {

using namespace abtrain;
using Order = std::vector<std::int64_t>;

struct Problem {
  at::Tensor vectors;  // workers x units x numel
  std::int64_t rounds = 10;
};

// The bound of these orders, one for each worker.
double bound(const at::Tensor& vectors, const std::vector<Order>& orders) {
  at::Tensor sums = at::zeros({vectors.size(1), vectors.size(2)}, at::kDouble);
  for (std::size_t w = 0; w < orders.size(); ++w) {
    sums.add_(vectors[static_cast<std::int64_t>(w)]
                  .index_select(0, at::tensor(orders[w], at::kLong))
                  .to(at::kDouble));
  }
  sums.sub_(sums.mean(0));
  return sums.cumsum(0).abs().max().item<double>();
}

std::vector<double> balanced(
    const Problem& problem,
    const orders::OrderOptions& options) {
  const std::int64_t units = problem.vectors.size(1);
  std::vector<std::vector<Order>> orders(
      static_cast<std::size_t>(problem.rounds + 1),
      std::vector<Order>(static_cast<std::size_t>(problem.vectors.size(0))));
  comm::run_workers(
      static_cast<int>(problem.vectors.size(0)),
      600,
      [&](comm::Communicator& world) {
        const at::Tensor own = problem.vectors[world.rank()];
        Order examples(static_cast<std::size_t>(units));
        std::iota(examples.begin(), examples.end(), 0);
        data::PublishedOrder published(examples, 1);
        orders::Balancer balancer(options, 1, 0, published);
        balancer.start(0, 0);
        balancer.bind(own.size(1), at::kCPU, &world);
        for (std::int64_t round = 0; round <= problem.rounds; ++round) {
          const Order now = published.epoch(round);
          orders[static_cast<std::size_t>(round)]
                [static_cast<std::size_t>(world.rank())] = now;
          for (std::size_t k = 0; round < problem.rounds && k < now.size();
               ++k) {
            balancer.step(own[now[k]]);
          }
        }
      });
  std::vector<double> bounds;
  for (const auto& round : orders) {
    bounds.push_back(bound(problem.vectors, round));
  }
  return bounds;
}

std::vector<double> shuffled(const Problem& problem) {
  std::vector<double> bounds;
  for (std::int64_t round = 0; round <= problem.rounds; ++round) {
    std::vector<Order> orders;
    for (std::int64_t w = 0; w < problem.vectors.size(0); ++w) {
      orders.push_back(data::permutation(
          problem.vectors.size(1),
          Random(
              1,
              RandomPurpose::Shuffle,
              static_cast<std::uint32_t>(round),
              static_cast<std::uint32_t>(w))));
    }
    bounds.push_back(bound(problem.vectors, orders));
  }
  return bounds;
}

void measure(int argc, char** argv) {
  const std::int64_t workers = bench::integer(argc, argv, "--workers", 64);
  const std::int64_t units = bench::integer(argc, argv, "--units", 250);
  const std::int64_t numel = bench::integer(argc, argv, "--numel", 16);
  Problem problem;
  problem.rounds = bench::integer(argc, argv, "--rounds", 10);
  problem.vectors = at::randn(
      {workers, units, numel}, at::detail::createCPUGenerator(1), at::kFloat);
  problem.vectors.div_(problem.vectors.norm(2, {2}, true));
  nlohmann::ordered_json rows = {
      {{"order", "shuffle"}, {"bound", shuffled(problem)}}};
  const auto add = [&](const char* order, orders::OrderWire wire) {
    orders::OrderOptions options;
    options.name = order;
    options.wire = wire;
    rows.push_back(
        {{"order",
          options.name == "cd-grab"
              ? formatted("{}, {}", order, orders::name_of(wire))
              : std::string(order)},
         {"bound", balanced(problem, options)}});
  };
  add("grab", orders::OrderWire::Fp32);
  add("id-grab", orders::OrderWire::Fp32);
  add("cd-grab", orders::OrderWire::Fp32);
  add("cd-grab", orders::OrderWire::Int8);
  const nlohmann::ordered_json all = {
      {"workers", workers},
      {"units", units},
      {"numel", numel},
      {"orders", rows}};
  if (argc > 1 && std::strcmp(argv[argc - 1], "--json") == 0) {
    std::printf("%s\n", all.dump(1).c_str());
    return;
  }
  for (const auto& row : rows) {
    std::printf("%-14s", row["order"].get<std::string>().c_str());
    for (const auto& value : row["bound"]) {
      std::printf(" %6.2f", value.get<double>());
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    measure(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_herding: %s\n", error.what());
    return 1;
  }
  return 0;
}
