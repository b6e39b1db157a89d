// Times what gradient-based example orders add to a data parallel step. Workers
// are threads that communicate; the steps of each order take turns with those
// of `shuffle`, which adds nothing.
//   bench_orders [--workers N] [--batch N] [--threads N] [--rounds N]
//                [--only order,wire,unit] [--json]
// Default: the quickstart's mlp (3 x 1024 on 28 x 28 pixels), 4 workers with 64
// images and one thread each. Figures are milliseconds per step of all workers,
// medians over rounds of ten steps; "more" is the median of the rounds' ratios,
// less 1.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "arguments.h"
#include "base/error.h"
#include "comm/meter.h"
#include "comm/run_workers.h"
#include "device/memory.h"
#include "methods/gradient_reduction.h"
#include "nn/example_gradients.h"
#include "optim/gradient_hooks.h"
#include "orders/balancer.h"
#include "training.h"

namespace {

using namespace abtrain;

constexpr int kSteps = 10;  // per round

using orders::OrderUnit;
using orders::OrderWire;

struct Kind {
  const char* order;
  OrderUnit unit;
  std::optional<OrderWire> wire = {};
  std::string wire_text() const {
    return wire ? orders::name_of(*wire) : "-";
  }
};
constexpr Kind kKinds[] = {
    {"grab", OrderUnit::Microbatch},
    {"id-grab", OrderUnit::Microbatch},
    {"cd-grab", OrderUnit::Microbatch, OrderWire::Fp32},
    {"cd-grab", OrderUnit::Microbatch, OrderWire::Int8},
    {"cd-grab", OrderUnit::Microbatch, OrderWire::Sketch},
    {"id-grab", OrderUnit::Example},
    {"grab", OrderUnit::Example},
    {"cd-grab", OrderUnit::Example, OrderWire::Sketch}};

// One worker's training with one order.
class Worker {
 public:
  Worker(
      const Kind& kind,
      bench::Training& training,
      std::int64_t batch,
      comm::Communicator& group)
      : training_(training),
        examples_(kind.unit == OrderUnit::Example),
        published_(units(batch), 1),
        balancer_(options_of(kind), 1, examples_ ? batch : 0, published_) {
    exchange_.bind(
        methods::slots_of(training.block()),
        training.block().gradients(),
        group);
    balancer_.start(0, 0);
    balancer_.bind(training.block().numel(), at::kCPU, &group);
  }
  // One training step, with or without the order.
  void step(std::int64_t t, bool ordered) {
    exchange_.watch({});
    if (ordered && !examples_) {
      exchange_.watch(
          [this](
              const at::Tensor& all, std::int64_t begin, std::int64_t count) {
            balancer_.see(all, begin, count);
          });
    }
    nn::Tape tape;
    exchange_.begin(t);
    training_.gradients(ordered && examples_ ? &tape : nullptr);
    if (ordered && examples_) {
      const at::NoGradGuard no_grad;
      std::vector<nn::Placed> trained;
      const auto& block = training_.block();
      for (std::size_t i = 0; i < block.parameters().size(); ++i) {
        trained.push_back({*block.parameters()[i].tensor, block.offset(i)});
      }
      const nn::ExampleGradients gradients(tape, trained);
      balancer_.step(orders::RecordedGradients(gradients));
    }
    exchange_.finish(t);
    if (ordered && !examples_) {
      balancer_.step(training_.block().gradients());
    }
    training_.update();
  }

 private:
  static orders::OrderOptions options_of(const Kind& kind) {
    orders::OrderOptions options;
    options.name = kind.order;
    options.wire = kind.wire.value_or(OrderWire::Fp32);
    options.unit = kind.unit;
    return options;
  }
  // More units than the benchmark can use up.
  static std::vector<std::int64_t> units(std::int64_t batch) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(4000 * batch));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  bench::Training& training_;
  bool examples_;
  data::PublishedOrder published_;
  orders::Balancer balancer_;
  compress::GradientExchange exchange_{{}, /*seed=*/1};
  // As in a run, a bucket is sent as soon as its gradients are ready.
  optim::GradientHooks hooks_{training_.block(), [this](std::size_t index) {
                                exchange_.ready(index);
                              }};
};

nlohmann::ordered_json measure(
    const Kind& kind,
    int workers,
    std::int64_t batch,
    int threads,
    std::int64_t rounds) {
  std::vector<double> plain, ordered, ratios;
  std::atomic<std::int64_t> bytes = 0;
  comm::run_workers(workers, 600, [&](comm::Communicator& world) {
    at::set_num_threads(threads);
    nn::ModelOptions model;
    model.name = "mlp";
    bench::Training training(
        model, {1, 28, 28, 10}, batch, {}, at::kFloat, 0.01, at::kCPU);
    comm::TrafficMeter meter;
    const auto group = comm::metered(world, "world", meter);
    Worker worker(kind, training, batch, *group);
    std::int64_t t = 0;
    const auto steps = [&](bool with_order) {
      world.barrier();
      return training.milliseconds([&] {
        for (int k = 0; k < kSteps; ++k) {
          worker.step(t++, with_order);
        }
        world.barrier();
      }) / kSteps;
    };
    for (std::int64_t round = -1; round < rounds; ++round) {
      const double without = steps(false);
      const double with = steps(true);
      if (round >= 0 && world.rank() == 0) {  // the first round is a warm-up
        plain.push_back(without);
        ordered.push_back(with);
        ratios.push_back(with / without);
      }
    }
    bytes += meter.of(comm::Purpose::Orders).bytes;
  });
  return {
      {"order", kind.order},
      {"wire", kind.wire_text()},
      {"unit", orders::name_of(kind.unit)},
      {"shuffle_ms", bench::median(plain)},
      {"step_ms", bench::median(ordered)},
      {"more", bench::median(ratios) - 1},
      {"bytes_per_step",
       static_cast<double>(bytes) /
           static_cast<double>((rounds + 1) * kSteps * workers)}};
}

void print(int argc, char** argv) {
  const auto workers =
      static_cast<int>(bench::integer(argc, argv, "--workers", 4));
  const std::int64_t batch = bench::integer(argc, argv, "--batch", 64);
  const auto threads =
      static_cast<int>(bench::integer(argc, argv, "--threads", 1));
  const std::int64_t rounds = bench::integer(argc, argv, "--rounds", 9);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const std::string only = bench::word(argc, argv, "--only", "");
  for (const Kind& kind : kKinds) {
    if (!only.empty() && only != formatted(
                                     "{},{},{}",
                                     kind.order,
                                     kind.wire_text(),
                                     orders::name_of(kind.unit))) {
      continue;
    }
    rows.push_back(measure(kind, workers, batch, threads, rounds));
  }
  if (argc > 1 && std::strcmp(argv[argc - 1], "--json") == 0) {
    const nlohmann::ordered_json all = {
        {"workers", workers}, {"batch", batch}, {"orders", rows}};
    std::printf("%s\n", all.dump(1).c_str());
    return;
  }
  std::printf(
      "mlp, batch %lld, %d workers\n\n"
      "| order | wire | unit | shuffle, ms per step | with the order | more | "
      "sent per worker and step |\n"
      "| --- | --- | --- | ---: | ---: | ---: | ---: |\n",
      static_cast<long long>(batch),
      workers);
  for (const auto& row : rows) {
    std::printf(
        "| %s | %s | %s | %.2f | %.2f | %.1f %% | %s |\n",
        row["order"].get<std::string>().c_str(),
        row["wire"].get<std::string>().c_str(),
        row["unit"].get<std::string>().c_str(),
        row["shuffle_ms"].get<double>(),
        row["step_ms"].get<double>(),
        100 * row["more"].get<double>(),
        human_bytes(row["bytes_per_step"].get<double>()).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  device::keep_freed_memory();
  try {
    print(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_orders: %s\n", error.what());
    return 1;
  }
  return 0;
}
