#include "plan/time.h"

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "base/rows.h"
#include "base/text.h"
#include "base/units.h"
#include "comm/groups.h"
#include "compress/bucket.h"
#include "linalg/svd.h"
#include "methods/ab/decompose.h"
#include "methods/ab/phase.h"
#include "methods/ab/synchronise.h"
#include "methods/local/plan.h"
#include "plan/traffic.h"

namespace abtrain::plan {

namespace {

constexpr double kHeaders = 1 + 66.0 / 1448;
// Begin and end of the backward pass as shares of a step's compute time: as
// usual, the forward pass takes half as long as the backward pass, and the
// optimizer part of the rest.
constexpr double kBackwardBegins = 0.3;
constexpr double kBackwardEnds = 0.9;

using Bytes = std::function<double(int rank)>;

class Links {
 public:
  Links(const Network& network, int workers)
      : network_(network), workers_(workers), share_(workers / network.nodes) {}

  // Seconds until the busiest link has sent what the workers send, in groups of
  // `size` workers.
  double seconds(int size, const Bytes& bytes) const {
    double busiest = 0;
    for (int node = 0; node < network_.nodes; ++node) {
      double sum = 0;
      std::set<int> counted;
      for (int rank = node * share_; rank < (node + 1) * share_; ++rank) {
        const int group = rank / size;
        if (!crosses(group, size)) {
          continue;
        }
        if (!network_.ring) {
          sum += bytes(rank) * away(rank, size);
        } else if (counted.insert(group).second) {
          sum += bytes(rank);  // one member of a ring sends to another node
        }
      }
      busiest = std::max(busiest, sum);
    }
    return 8 * busiest * kHeaders / network_.rate;
  }
  // Latency of one collective: a reduce-scatter and an all-gather.
  double latency(int size) const {
    bool any = false;
    for (int group = 0; group < workers_ / size; ++group) {
      any = any || crosses(group, size);
    }
    return any ? network_.latency * (network_.ring ? 2 * (size - 1) : 2) : 0;
  }

 private:
  bool crosses(int group, int size) const {
    return group * size / share_ != ((group + 1) * size - 1) / share_;
  }
  // The share of a worker's bytes that leaves its node.
  double away(int rank, int size) const {
    const int group = rank / size;
    const int node = rank / share_;
    const int first = std::max(group * size, node * share_);
    const int last = std::min((group + 1) * size, (node + 1) * share_);
    return static_cast<double>(size - (last - first)) / (size - 1);
  }

  const Network& network_;
  int workers_;
  int share_;
};

// Time of a step whose gradients leave bucket by bucket. `wire`: seconds to
// send all buckets.
double step_seconds(
    double compute,
    const std::vector<compress::Bucket>& buckets,
    double wire,
    double latency) {
  double numel = 0;
  for (const compress::Bucket& bucket : buckets) {
    numel += static_cast<double>(bucket.numel());
  }
  double computed = 0;
  double arrived = 0;
  for (const compress::Bucket& bucket : buckets) {
    const double share = static_cast<double>(bucket.numel()) / numel;
    computed += share;
    const double ready =
        compute *
        (kBackwardBegins + (kBackwardEnds - kBackwardBegins) * computed);
    arrived = std::max(arrived, ready) + share * wire + latency;
  }
  return std::max(arrived, kBackwardEnds * compute) +
         (1 - kBackwardEnds) * compute;
}

struct Counts {
  double dense = 0, ab = 0, sync = 0, dense_cuts = 0, product_cuts = 0;
};

Counts count_phases(
    const config::RunOptions& options,
    const RunLength& length) {
  if (options.method.name != "ab") {
    return {static_cast<double>(length.steps)};
  }
  const methods::PhaseCounts n = methods::count_phases(
      methods::make_phase_plan(options.method, length), length.steps);
  return {
      static_cast<double>(n.full),
      static_cast<double>(n.ab),
      static_cast<double>(n.sync),
      static_cast<double>(n.dense_cuts),
      static_cast<double>(n.product_cuts)};
}

// Flops of the busiest worker when `workers` divide the layers among them.
double load(const methods::ModelSizes& sizes, int workers) {
  std::vector<double> costs;
  for (const methods::ModelSizes::Layer& l : sizes.layers) {
    costs.push_back(linalg::decomposition_cost(l.m, l.n));
  }
  double largest = 0;
  for (const auto& own : methods::share_out(costs, workers)) {
    double sum = 0;
    for (const std::size_t i : own) {
      sum += costs[i];
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

// Cost of a decomposition of products relative to that of dense weights.
double product_share(const methods::ModelSizes& sizes) {
  double products = 0;
  double dense = 0;
  for (const methods::ModelSizes::Layer& l : sizes.layers) {
    dense += linalg::decomposition_cost(l.m, l.n);
    products += methods::product_cost(l.m, l.n, l.rank);
  }
  return dense > 0 ? products / dense : 0;
}

}  // namespace

TimePlan plan_time(
    const config::RunOptions& options,
    const methods::ModelSizes& sizes,
    const RunLength& length,
    const Network& network,
    const ComputeTime& compute) {
  const auto workers = static_cast<int>(options.workers);
  const bool ab = options.method.name == "ab";
  const bool local = methods::has_local_steps(options.method);
  const Links links(network, workers);
  const methods::StepTraffic beside = order_traffic(options, length);
  std::vector<methods::TrafficPlan> traffic;
  for (int rank = 0; rank < workers; ++rank) {
    traffic.push_back(methods::plan_traffic(
        options.method, options.reducer, sizes, workers, rank, length, beside));
  }
  const auto of = [&](std::int64_t methods::TrafficPlan::*what) -> Bytes {
    return [&traffic, what](int rank) {
      return static_cast<double>(traffic[static_cast<std::size_t>(rank)].*what);
    };
  };
  const double latency = links.latency(workers);

  TimePlan plan;
  Counts n = count_phases(options, length);
  double local_steps = 0;  // dense steps that send nothing
  if (local) {
    const methods::LocalPlan rounds =
        methods::make_local_plan(options.method, length);
    local_steps = n.dense - static_cast<double>(rounds.warmup);
  } else if (ab && options.method.full_phase.sync_every > 1) {
    local_steps = n.dense;
  }
  n.dense -= local_steps;
  plan.dense_step = step_seconds(
      compute.dense,
      compress::make_buckets(sizes.dense, options.reducer.bucket_mb),
      links.seconds(workers, of(&methods::TrafficPlan::full_step)),
      latency);
  double svd = 0;
  if (ab) {
    const comm::Groups groups = methods::make_groups(options.method, workers);
    const double wire =
        links.seconds(groups.group_size, of(&methods::TrafficPlan::ab_step));
    for (const auto* slots : {&sizes.a, &sizes.b}) {
      plan.ab_step = std::max(
          plan.ab_step,
          step_seconds(
              compute.ab,
              compress::make_buckets(*slots, options.reducer.bucket_mb),
              wire,
              links.latency(groups.group_size)));
    }
    // Three rounds for the factors, one for the dense parameters
    // (docs/methods.md).
    plan.sync =
        links.seconds(workers, of(&methods::TrafficPlan::sync)) + 4 * latency;
    svd =
        compute.decompose * load(sizes, workers) / load(sizes, compute.workers);
    plan.decompose =
        svd + links.seconds(workers, of(&methods::TrafficPlan::decompose)) +
        latency;
  }

  // Traffic besides these: averages of local steps, orders, the end of the run.
  const double rest = links.seconds(workers, [&](int rank) {
    const methods::TrafficPlan& t = traffic[static_cast<std::size_t>(rank)];
    const double known = n.dense * static_cast<double>(t.full_step) +
                         n.ab * static_cast<double>(t.ab_step) +
                         n.sync * static_cast<double>(t.sync) +
                         n.dense_cuts * static_cast<double>(t.decompose);
    return std::max(0.0, static_cast<double>(t.total) - known);
  });
  double waited = rest;
  if (local) {
    const methods::LocalPlan rounds =
        methods::make_local_plan(options.method, length);
    double events = 0;
    for (std::int64_t f = 0; f < rounds.fragments; ++f) {
      events += static_cast<double>(rounds.meetings_of(f));
    }
    // `delay` steps hide part of it.
    const double one = rest / (events + 1) + latency;
    plan.sync = one * static_cast<double>(rounds.fragments);
    waited = one + events * std::max(
                                0.0,
                                one - static_cast<double>(rounds.delay) *
                                          compute.dense);
  } else if (ab && options.method.full_phase.sync_every > 1) {
    waited += latency * local_steps /
              static_cast<double>(options.method.full_phase.sync_every);
  }

  const double cut = product_share(sizes);
  plan.train = n.dense * plan.dense_step + local_steps * compute.dense +
               n.ab * plan.ab_step + n.sync * plan.sync +
               n.dense_cuts * plan.decompose + n.product_cuts * svd * cut +
               waited;
  plan.compute = (n.dense + local_steps) * compute.dense + n.ab * compute.ab;
  plan.communication =
      plan.train - plan.compute - (n.dense_cuts + n.product_cuts * cut) * svd;
  if (local_steps > 0) {
    plan.dense_step = compute.dense;
  }
  return plan;
}

std::string network_text(const Network& network, const ComputeTime& compute) {
  return str(
      network.nodes,
      network.nodes == 1 ? std::string(" node")
                         : str(" nodes, links of ",
                               rate_text(network.rate),
                               " each way, ",
                               short_time_text(network.latency)),
      "; compute time ",
      compute.how);
}

std::string time_text(
    const config::RunOptions& options,
    const RunLength& length,
    const Network& network,
    const ComputeTime& compute,
    const TimePlan& plan) {
  const auto ms = [](double seconds) {
    return seconds >= 10 ? human_seconds(seconds)
                         : str(fixed(1e3 * seconds, 1), " ms");
  };
  const auto step = [&](double whole, double computed) {
    return str(
        ms(whole), ", of which ", ms(std::min(whole, computed)), " computing");
  };
  std::string out = str("\ntime (", network_text(network, compute), ")\n");
  out += row("dense step", step(plan.dense_step, compute.dense));
  if (options.method.name == "ab") {
    out += row("AB step", step(plan.ab_step, compute.ab));
    out += row("decomposition", ms(plan.decompose));
  }
  if (plan.sync > 0) {
    out += row("synchronisation", ms(plan.sync));
  }
  out +=
      row("average step", ms(plan.train / static_cast<double>(length.steps)));
  out +=
      row("whole run",
          str(human_seconds(plan.train),
              " of training, ",
              fixed(100 * plan.communication / plan.train, 1),
              " % of it communicating; evaluations and checkpoints are extra"));
  return out;
}

}  // namespace abtrain::plan
