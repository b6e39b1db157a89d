#include "plan/time.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/rows.h"
#include "base/text.h"
#include "base/units.h"
#include "compress/bucket.h"
#include "linalg/svd.h"
#include "methods/ab/gather_layers.h"
#include "methods/method_kind.h"
#include "plan/bounds.h"
#include "plan/traffic.h"

namespace abtrain::plan {

namespace {

constexpr double kHeaders = 1 + 66.0 / 1448;
// Start and end of the backward pass as shares of a step's compute time. As is usual, the forward
// pass is assumed to take half as long as the backward pass. The last tenth is everything else.
constexpr double kBackwardBegins = 0.3;
constexpr double kBackwardEnds = 0.9;

using Bytes = std::function<double(int rank)>;

class Links {
 public:
  Links(const Network& network, int workers) : network_(network), share_(workers / network.nodes) {}

  // Seconds until the busiest link has sent the workers' bytes. Groups have `size` workers.
  double seconds(int size, const Bytes& bytes) const {
    double busiest = 0;
    for (int node = 0; node < network_.nodes; ++node) {
      double sum = 0;
      for (int rank = node * share_; rank < (node + 1) * share_; ++rank) {
        sum += bytes(rank) * away(rank, size);
      }
      busiest = std::max(busiest, sum);
    }
    return 8 * busiest * kHeaders / network_.rate;
  }
  // Latency of one collective: a reduce-scatter and an all-gather.
  double latency(int size) const {
    // If every node holds only whole groups, no group crosses a link.
    return share_ % size == 0 ? 0 : network_.latency * (network_.ring ? 2 * (size - 1) : 2);
  }

 private:
  // The share of a worker's bytes that leaves its node. In a ring, one member per node sends all of
  // its bytes to another node, the others none.
  double away(int rank, int size) const {
    const int group = rank / size;
    const int node = rank / share_;
    const int first = std::max(group * size, node * share_);
    const int last = std::min((group + 1) * size, (node + 1) * share_);
    const int others = size - (last - first);  // members on other nodes
    if (network_.ring) {
      return rank == first && others > 0 ? 1 : 0;
    }
    return static_cast<double>(others) / std::max(1, size - 1);
  }

  const Network& network_;
  int share_;  // workers per node
};

// Time of a step that sends its gradients bucket by bucket. `wire`: seconds to send all buckets.
double step_seconds(
    double compute, const std::vector<compress::Bucket>& buckets, double wire, double latency) {
  const auto numel = static_cast<double>(std::transform_reduce(
      buckets.begin(), buckets.end(), std::int64_t{0}, std::plus<>(),
      std::mem_fn(&compress::Bucket::numel)));
  double computed = 0;
  double arrived = 0;
  for (const compress::Bucket& bucket : buckets) {
    const double share = static_cast<double>(bucket.numel()) / numel;
    computed += share;
    const double ready = compute * (kBackwardBegins + (kBackwardEnds - kBackwardBegins) * computed);
    arrived = std::max(arrived, ready) + share * wire + latency;
  }
  return std::max(arrived, kBackwardEnds * compute) + (1 - kBackwardEnds) * compute;
}

// Flops of the busiest worker if `workers` workers divide the decompositions of the layers.
double load(const methods::ModelSizes& sizes, int workers) {
  std::vector<double> costs;
  for (const methods::LayerShape& l : sizes.layers) {
    costs.push_back(methods::decomposition_cost({l.m, l.n, 0, l.grid}));
  }
  const std::vector<int> owners = linalg::balance(costs, workers);
  std::vector<double> loads(static_cast<std::size_t>(workers));
  for (std::size_t i = 0; i < costs.size(); ++i) {
    loads[static_cast<std::size_t>(owners[i])] += costs[i];
  }
  return std::ranges::max(loads);
}

// Cost of decomposing products of factors, relative to decomposing dense weights.
double product_share(const methods::ModelSizes& sizes) {
  double products = 0;
  double dense = 0;
  for (const methods::LayerShape& l : sizes.layers) {
    dense += methods::decomposition_cost({l.m, l.n, 0, l.grid});
    products += l.rank > 0 ? methods::decomposition_cost(l) : 0;
  }
  return dense > 0 ? products / dense : 0;
}

}  // namespace

double seconds_in(const char* option, const std::string& text) {
  const auto seconds = parse_seconds(text);
  ABT_CHECK(
      seconds && *seconds <= kMaxSeconds, Usage,
      "{}: expected a time of at most a year, such as 50us or 1.5ms; got '{}'", option, text);
  return *seconds;
}

Network network_of(const Link& link, const config::RunOptions& options) {
  constexpr double kMaxRate = 1e18;  // bits per second
  const std::int64_t nodes = link.nodes > 0 ? link.nodes : options.workers;
  ABT_CHECK(
      options.workers % nodes == 0, Usage, "--nodes: expected a divisor of the {} workers; got {}",
      options.workers, nodes);
  Network network{.nodes = static_cast<int>(nodes), .ring = options.comm == comm::BackEnd::Nccl};
  if (!link.latency.empty()) {
    network.latency = seconds_in("--latency", link.latency);
  }
  if (network.nodes > 1 || !link.bandwidth.empty()) {
    const auto rate = parse_rate(link.bandwidth);
    ABT_CHECK(
        rate && *rate >= 1 && *rate <= kMaxRate, Usage,
        "--bandwidth: expected the rate of a node's link, such as 1Gbit or "
        "100Mbit/s, from 1 bit/s to 10^18, for {} workers on {} nodes; got {}",
        options.workers, nodes,
        link.bandwidth.empty() ? "none (--nodes 1: all on one)" : "'" + link.bandwidth + "'");
    network.rate = *rate;
  }
  return network;
}

double wire_seconds(const Network& network, int workers, double bytes) {
  return Links(network, workers).seconds(workers, [&](int) { return bytes; });
}

TimePlan plan_time(
    const config::RunOptions& options, const methods::ModelSizes& sizes, const RunLength& length,
    const Network& network, const ComputeTime& compute) {
  const auto workers = static_cast<int>(options.workers);
  const methods::MethodKind& kind = methods::kind_of(options.method);
  const methods::Timeline timeline = kind.timeline(options.method, length);
  const Links links(network, workers);
  const auto traffic = traffic_of_workers(options, sizes, length);
  const auto of = [&](std::int64_t methods::TrafficPlan::*what) -> Bytes {
    return [&traffic, what](int rank) {
      return static_cast<double>(traffic[static_cast<std::size_t>(rank)].*what);
    };
  };
  const double latency = links.latency(workers);

  TimePlan plan{compute};
  const auto dense = static_cast<double>(timeline.steps(methods::Over::World));
  const auto alone = static_cast<double>(timeline.steps(methods::Over::Nobody));
  const auto ab = static_cast<double>(timeline.steps(methods::Over::Group));
  const auto dense_cuts = static_cast<double>(timeline.count(methods::Event::Decompose));
  const auto product_cuts =
      static_cast<double>(timeline.count(methods::Event::SynchronizeAndDecompose));
  const double syncs = product_cuts + static_cast<double>(
                                          timeline.count(methods::Event::Synchronize) +
                                          timeline.count(methods::Event::AverageFactors));
  plan.dense_step = step_seconds(
      compute.dense, compress::make_buckets(sizes.dense, options.reducer.bucket_mb),
      links.seconds(workers, of(&methods::TrafficPlan::full_step)), latency);
  double svd = 0;
  if (kind.factors_weights) {
    const int members = traffic.front().ab_members;
    const double wire = links.seconds(members, of(&methods::TrafficPlan::ab_step));
    for (const auto* slots : {&sizes.a, &sizes.b}) {
      plan.ab_step = std::max(
          plan.ab_step, step_seconds(
                            compute.ab, compress::make_buckets(*slots, options.reducer.bucket_mb),
                            wire, links.latency(members)));
    }
    // Three rounds for the factors, one for the dense parameters
    // (docs/methods.md).
    plan.sync = links.seconds(workers, of(&methods::TrafficPlan::sync)) + 4 * latency;
    svd = compute.decompose * load(sizes, workers) / load(sizes, compute.workers);
    plan.decompose = svd + links.seconds(workers, of(&methods::TrafficPlan::decompose)) + latency;
  }

  // Traffic not counted so far: the example order, the end of the run.
  const double rest = links.seconds(workers, [&](int rank) {
    const methods::TrafficPlan& t = traffic[static_cast<std::size_t>(rank)];
    const double known = dense * static_cast<double>(t.full_step) +
                         ab * static_cast<double>(t.ab_step) + syncs * static_cast<double>(t.sync) +
                         dense_cuts * static_cast<double>(t.decompose);
    return std::max(0.0, static_cast<double>(t.total) - known);
  });
  double waited = rest;
  if (timeline.fragments > 0) {
    const auto events = static_cast<double>(timeline.count(methods::Event::SynchronizeFragment));
    // Training continues for `delay` steps, which hides part of a synchronization.
    const double one = rest / (events + 1) + latency;
    const double hidden = static_cast<double>(timeline.delay) * compute.dense;
    plan.sync = one * static_cast<double>(timeline.fragments);
    waited = one + events * std::max(0.0, one - hidden);
  }

  const double cut = product_share(sizes);
  plan.train = dense * plan.dense_step + alone * compute.dense + ab * plan.ab_step +
               syncs * plan.sync + dense_cuts * plan.decompose + product_cuts * svd * cut + waited;
  plan.compute = (dense + alone) * compute.dense + ab * compute.ab;
  plan.communication = plan.train - plan.compute - (dense_cuts + product_cuts * cut) * svd;
  if (alone > 0) {
    plan.dense_step = compute.dense;
  }
  return plan;
}

std::string link_text(const Network& network) {
  return formatted(
      "{}{}", network.nodes,
      network.nodes == 1 ? " node"
                         : formatted(
                               " nodes, links of {} each way, {}", rate_text(network.rate),
                               short_time_text(network.latency)));
}

std::string network_text(const Network& network, const ComputeTime& compute) {
  return link_text(network) + "; compute time " + compute.how;
}

std::string time_text(
    const config::RunOptions& options, const RunLength& length, const Network& network,
    const std::vector<TimePlan>& plans) {
  const auto figure = [&](auto of, const auto& text) {
    return between(bounds_of(plans, of), text);
  };
  const auto ms = [](double seconds) {
    return seconds >= 10 ? human_seconds(seconds) : formatted("{:.1f} ms", 1e3 * seconds);
  };
  const auto step = [&](double TimePlan::*whole, double ComputeTime::*part) {
    const auto computed = [&](const TimePlan& plan) {
      return std::min(plan.*whole, plan.measured.*part);
    };
    return formatted("{}, of which {} computing", figure(whole, ms), figure(computed, ms));
  };
  const ComputeTime& measured = plans.front().measured;
  std::string out = formatted("\ntime ({})\n", network_text(network, measured));
  if (!measured.warning.empty()) {
    out += row("not reliable", measured.warning);
  }
  out += row("dense step", step(&TimePlan::dense_step, &ComputeTime::dense));
  if (methods::kind_of(options.method).factors_weights) {
    out += row("AB step", step(&TimePlan::ab_step, &ComputeTime::ab));
    out += row("decomposition", figure(&TimePlan::decompose, ms));
  }
  if (bounds_of(plans, &TimePlan::sync).most > 0) {
    out += row("synchronization", figure(&TimePlan::sync, ms));
  }
  const auto steps = static_cast<double>(length.steps);
  out += row("average step", figure([&](const TimePlan& plan) { return plan.train / steps; }, ms));
  const auto share = [](const TimePlan& plan) { return 100 * plan.communication / plan.train; };
  const auto percent = [](double value) { return formatted("{:.1f} %", value); };
  out +=
      row("whole run", formatted(
                           "{} of training, {} of it communicating; evaluations and "
                           "checkpoints are extra",
                           figure(&TimePlan::train, human_seconds), figure(share, percent)));
  return out;
}

}  // namespace abtrain::plan
