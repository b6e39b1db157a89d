#include "methods/traffic_plan.h"

#include <algorithm>

#include "comm/traffic.h"
#include "compress/average.h"
#include "compress/gradient_exchange.h"
#include "linalg/svd.h"
#include "methods/ab/decompose.h"
#include "methods/ab/gather_layers.h"
#include "methods/ab/phase.h"
#include "methods/ab/synchronise.h"
#include "methods/local/plan.h"

namespace abtrain::methods {

namespace {

// Predicts the traffic of one worker.
class Planner {
 public:
  Planner(
      const MethodOptions& options,
      const compress::ReducerOptions& reducer,
      const ModelSizes& sizes,
      int workers,
      int rank)
      : options_(options),
        sizes_(sizes),
        workers_(workers),
        rank_(rank),
        reducer_(reducer),
        full_reducer_(options.full_phase.reducer_of(reducer)),
        full_wire_(compress::plain_dtype(full_reducer_)),
        sync_element_(
            static_cast<std::int64_t>(c10::elementSize(options.sync_dtype))) {
    dense_ = sizes_.parameters;
    for (const ModelSizes::Layer& l : sizes_.layers) {
      if (l.rank > 0) {
        dense_ -= l.m * l.n;
        a_ += l.m * l.rank;
        b_ += l.n * l.rank;
      }
      fixed_ -= l.m * l.n;
    }
    fixed_ += sizes_.parameters;
  }

  TrafficPlan ddp(std::int64_t steps, const StepTraffic& beside) {
    compress::ExchangePlan gradients(reducer_, sizes_.dense);
    TrafficPlan plan;
    plan.full_step = gradients.usual_bytes(workers_, rank_);
    plan.total = gradients.bytes_between(workers_, rank_, 0, steps);
    for (std::int64_t t = 0; beside && t < steps; ++t) {
      plan.total += beside(t, 0, sizes_.parameters, workers_, rank_);
    }
    plan.total += buffers();
    return plan;
  }
  std::int64_t buffers() const {
    return all_reduce(sizes_.buffers, 4);
  }

  TrafficPlan ab(const RunLength& run, const StepTraffic& beside) {
    const comm::Groups groups = make_groups(options_, workers_);
    const PhasePlan phases = make_phase_plan(options_, run);
    const std::int64_t local = options_.full_phase.sync_every;
    TrafficPlan plan;
    compress::ExchangePlan full(
        full_reducer_,
        local > 1 ? std::vector<compress::Slot>() : sizes_.dense);
    compress::ExchangePlan inside(
        reducer_, groups.role_of(rank_) == comm::Role::A ? sizes_.a : sizes_.b);
    const int place = rank_ % groups.group_size;
    const std::int64_t inside_numel =
        dense_ + (groups.role_of(rank_) == comm::Role::A ? a_ : b_);
    plan.full_step = full.usual_bytes(workers_, rank_);
    plan.ab_step = inside.usual_bytes(groups.group_size, place);
    plan.sync =
        FactorExchange::bytes_sent(groups, rank_, a_, b_, sync_element_) +
        all_reduce(dense_ * (1 + sizes_.moments), sync_element_) + buffers();
    plan.decompose = decompose_dense() + buffers();

    Phase phase = Phase::Full;
    std::int64_t switched_at = -1;
    std::int64_t since = 0;  // the phase's first step
    // Step and total at the last synchronisation.
    std::int64_t round_at = -phases.interval - 1;
    std::int64_t round_total = 0;
    const std::int64_t dense =
        std::max(reducer_.dense_steps, full_reducer_.dense_steps);
    // Adds the steps of a phase up to t.
    const auto add_steps = [&](std::int64_t t) {
      plan.total +=
          phase == Phase::Ab
              ? inside.bytes_between(groups.group_size, place, since, t)
              : full.bytes_between(workers_, rank_, since, t);
      if (phase == Phase::Full && local > 1) {
        plan.total += (t - since) / local * average(false);
      }
      for (std::int64_t s = since; beside && s < t; ++s) {
        if (phase == Phase::Ab) {
          plan.total +=
              beside(s, since, inside_numel, groups.group_size, place);
        } else if (local == 1) {
          plan.total += beside(s, since, sizes_.parameters, workers_, rank_);
        }
      }
    };
    for (std::int64_t t = next_switch(phases, -1, phase); t <= run.steps;
         t = next_switch(phases, t, phase)) {
      const Switch now = switch_after(phases, t, phase);
      add_steps(t);
      if (t > 0 && phase == Phase::Full && local > 1) {
        // In place of the average that would have been due.
        plan.total +=
            average(true) - ((t - since) % local == 0 ? average(false) : 0);
      }
      if (phase == Phase::Ab) {
        plan.total += plan.sync;
      }
      if (now == Switch::Decompose) {
        plan.total += plan.decompose;
      } else if (now == Switch::SyncAndDecompose) {
        plan.total += decompose_products();
      }
      phase = now == Switch::Sync ? Phase::Full : Phase::Ab;
      if (now != Switch::Decompose && t >= dense && !beside) {
        // Past `dense_steps` every round sends the same bytes.
        if (round_at == t - phases.interval) {
          const std::int64_t rounds = (run.steps - t) / phases.interval;
          plan.total += rounds * (plan.total - round_total);
          t += rounds * phases.interval;
        }
        round_at = t;
        round_total = plan.total;
      }
      switched_at = since = t;
    }
    add_steps(run.steps);
    if (phase == Phase::Full) {
      plan.total += plan.decompose + (local > 1 ? average(true) : 0);
    } else if (switched_at != run.steps || run.steps == 0) {
      plan.total += plan.sync;
      if (options_.sync == SyncMode::Full || some_stay_dense()) {
        plan.total += decompose_products();
      }
    }
    return plan;
  }

 private:
  std::int64_t all_reduce(std::int64_t numel, std::int64_t size) const {
    return comm::all_reduce_bytes(numel, size, workers_, rank_);
  }
  // An average of local steps in FULL: the parameters and, at the end of the
  // phase, also the moments of what is never factored.
  std::int64_t average(bool with_moments) const {
    // Moments are not sent in fp16.
    const std::int64_t moments = with_moments ? fixed_ * sizes_.moments : 0;
    const auto size = static_cast<std::int64_t>(c10::elementSize(full_wire_));
    return all_reduce(sizes_.parameters, size) +
           all_reduce(moments, full_wire_ == at::kHalf ? 4 : size);
  }
  bool some_stay_dense() const {
    return std::ranges::any_of(
        sizes_.layers, [](const auto& layer) { return layer.rank == 0; });
  }
  // Bytes that this worker sends of the layers that it owns, when they are
  // divided by `cost`; `bytes`: those of one layer.
  template <class Cost, class Numel>
  std::int64_t gathered(const Cost& cost, const Numel& bytes) const {
    std::vector<double> costs;
    std::vector<const ModelSizes::Layer*> layers;
    for (const ModelSizes::Layer& l : sizes_.layers) {
      if (cost(l) > 0) {
        costs.push_back(cost(l));
        layers.push_back(&l);
      }
    }
    std::int64_t own = 0;
    const auto owned = share_out(costs, workers_);
    for (const std::size_t i : owned[static_cast<std::size_t>(rank_)]) {
      own += bytes(*layers[i]);
    }
    return comm::all_gather_bytes(own, 1, workers_);
  }
  std::int64_t spectrum_bytes(const ModelSizes::Layer& l) const {
    return 8 * spectrum_numbers(options_.svd, l.n);
  }
  std::int64_t decompose_dense() const {
    return gathered(
        [](const ModelSizes::Layer& l) {
          return linalg::decomposition_cost(l.m, l.n);
        },
        [&](const ModelSizes::Layer& l) {
          return spectrum_bytes(l) + 4 * l.rank * (l.m + l.n);
        });
  }
  // For a synchronisation that is followed at once by a decomposition; layers
  // that were dense are decomposed as dense.
  std::int64_t decompose_products() const {
    const std::int64_t factor = options_.sync == SyncMode::Full ? 2 : 1;
    const std::int64_t of_dense = gathered(
        [](const ModelSizes::Layer& l) {
          return l.rank == 0 ? linalg::decomposition_cost(l.m, l.n) : 0.0;
        },
        [&](const ModelSizes::Layer& l) { return spectrum_bytes(l); });
    return of_dense + gathered(
                          [&](const ModelSizes::Layer& l) {
                            return l.rank > 0
                                       ? product_cost(l.m, l.n, factor * l.rank)
                                       : 0.0;
                          },
                          [&](const ModelSizes::Layer& l) {
                            const std::int64_t k = factor * l.rank;
                            return 8 * k + 4 * 2 * l.rank * k;
                          });
  }

  const MethodOptions& options_;
  const ModelSizes& sizes_;
  int workers_;
  int rank_;
  compress::ReducerOptions reducer_;
  compress::ReducerOptions full_reducer_;
  at::ScalarType full_wire_;
  std::int64_t sync_element_;
  std::int64_t a_ = 0;
  std::int64_t b_ = 0;
  std::int64_t dense_ = 0;  // parameters that are dense in the AB phase
  std::int64_t fixed_ = 0;  // parameters that are never factored
};

}  // namespace

TrafficPlan plan_traffic(
    const MethodOptions& options,
    const compress::ReducerOptions& reducer,
    const ModelSizes& sizes,
    int workers,
    int rank,
    const RunLength& run,
    const StepTraffic& beside) {
  if (has_local_steps(options)) {
    return plan_local_traffic(
        options, reducer, sizes, workers, rank, run, beside);
  }
  Planner planner(options, reducer, sizes, workers, rank);
  if (options.name == "ab") {
    return planner.ab(run, beside);
  }
  return planner.ddp(run.steps, beside);
}

}  // namespace abtrain::methods
