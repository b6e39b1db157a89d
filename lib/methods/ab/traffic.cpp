#include "methods/ab/traffic.h"

#include <algorithm>
#include <limits>

#include "comm/traffic.h"
#include "compress/gradient_exchange.h"
#include "compress/schemes.h"
#include "methods/ab/gather_layers.h"
#include "methods/ab/outer_state.h"
#include "methods/ab/phase.h"
#include "methods/ab/synchronize.h"

namespace abtrain::methods {

namespace {

// Predicts the traffic of one worker.
class Planner {
 public:
  Planner(const MethodSetup& setup, const ModelSizes& sizes, int rank)
      : options_(setup.options),
        sizes_(sizes),
        workers_(setup.workers),
        rank_(rank),
        reducer_(setup.reducer),
        full_reducer_(options_.full_phase.reducer.or_else(setup.reducer)),
        full_wire_(compress::plain_dtype(full_reducer_)),
        outer_(options_) {
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

  TrafficPlan plan(const RunLength& run, const StepTraffic& beside) {
    const comm::Groups groups = make_groups(options_, workers_);
    const Timeline timeline =
        ab_timeline(make_phase_plan(options_, run), run.steps);
    const bool own_a = groups.role_of(rank_) == comm::Role::A;
    compress::ExchangePlan full(
        full_reducer_,
        timeline.average_every > 0 ? std::vector<compress::Slot>()
                                   : sizes_.dense);
    compress::ExchangePlan inside(reducer_, own_a ? sizes_.a : sizes_.b);
    const int members = groups.group_size;
    const int member = rank_ % members;
    TrafficPlan plan;
    plan.full_step = full.usual_bytes(workers_, rank_);
    plan.ab_step = inside.usual_bytes(members, member);
    plan.ab_members = members;
    const auto element =
        static_cast<std::int64_t>(c10::elementSize(outer_.dtype()));
    const std::int64_t plain =
        FactorExchange::bytes_sent(groups, rank_, a_, b_, element);
    const std::int64_t dense =
        all_reduce(dense_ * (1 + sizes_.moments), element) + buffers();
    plan.sync =
        dense + (outer_.format() ? FactorExchange::bytes_sent(
                                       groups, rank_, a_, b_, *outer_.format())
                                 : plain);
    last_sync_ = dense + plain;
    plan.decompose = decompose_dense() + buffers();

    // Of the steps first .. end - 1 of a stretch.
    const auto steps = [&](const Stretch& s,
                           std::int64_t first,
                           std::int64_t end) {
      switch (s.gradients) {
        case Over::Group:
          return inside.bytes_between(members, member, first, end) +
                 sum_of_steps(
                     beside,
                     first,
                     end,
                     dense_ + (own_a ? a_ : b_),
                     members,
                     member);
        case Over::World:
          return full.bytes_between(workers_, rank_, first, end) +
                 sum_of_steps(
                     beside, first, end, sizes_.parameters, workers_, rank_);
        case Over::Nobody:
          break;
      }
      return (end - first) / timeline.average_every * average(false);
    };
    // Past `dense_steps` all occurrences send the same bytes.
    const std::int64_t steady =
        beside ? std::numeric_limits<std::int64_t>::max()
               : std::max(reducer_.dense_steps, full_reducer_.dense_steps);
    for (const Stretch& s : timeline.stretches) {
      for (std::int64_t k = 0; k < s.times;) {
        const std::int64_t first = s.first + k * s.every;
        const std::int64_t times = first >= steady ? s.times - k : 1;
        plan.total += times * steps(s, first, first + s.steps);
        k += times;
      }
      plan.total += s.times * after(s, timeline.average_every, plan);
    }
    return plan;
  }

 private:
  // Of what happens at the end of a stretch.
  std::int64_t after(
      const Stretch& s,
      std::int64_t average_every,
      const TrafficPlan& plan) const {
    switch (s.after) {
      case Event::Decompose:
        if (s.gradients == Over::Nobody && s.steps > 0) {
          // In place of the average that would have been due.
          return plan.decompose + average(true) -
                 (s.steps % average_every == 0 ? average(false) : 0);
        }
        return plan.decompose;
      case Event::Synchronize:
        return plan.sync;
      case Event::SynchronizeAndDecompose:
        return plan.sync + decompose_products();
      default:  // the run ends
        break;
    }
    if (s.phase == Phase::Full) {
      return plan.decompose + (average_every > 0 ? average(true) : 0);
    }
    const bool decomposes =
        options_.sync == SyncMode::Full || some_stay_dense();
    return s.steps == 0 ? 0
                        : last_sync_ + (decomposes ? decompose_products() : 0);
  }
  std::int64_t all_reduce(std::int64_t numel, std::int64_t size) const {
    return comm::all_reduce_bytes(numel, size, workers_, rank_);
  }
  std::int64_t buffers() const {
    return all_reduce(sizes_.buffers, 4);
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
  // Bytes that this worker sends of the layers that it decomposes. `factor`: of
  // the products of factored layers, rank over the factors' rank; 0: all layers
  // are dense.
  std::int64_t gathered(std::int64_t factor) const {
    std::vector<SourceShape> shapes;
    for (const ModelSizes::Layer& l : sizes_.layers) {
      shapes.push_back({l.m, l.n, factor * l.rank});
    }
    std::int64_t own = 0;
    const Owned owned = share_out(shapes, workers_);
    for (const std::size_t i : owned[static_cast<std::size_t>(rank_)]) {
      own += 8 * spectrum_numbers(options_.svd, shapes[i]) +
             4 * factor_numbers(shapes[i], sizes_.layers[i].rank);
    }
    return comm::all_gather_bytes(own, 1, workers_);
  }
  std::int64_t decompose_dense() const {
    return gathered(0);
  }
  // For a synchronization that is followed at once by a decomposition; layers
  // that were dense are decomposed as dense.
  std::int64_t decompose_products() const {
    return gathered(options_.sync == SyncMode::Full ? 2 : 1);
  }

  const MethodOptions& options_;
  const ModelSizes& sizes_;
  int workers_;
  int rank_;
  compress::ReducerOptions reducer_;
  compress::ReducerOptions full_reducer_;
  at::ScalarType full_wire_;
  OuterState outer_;
  std::int64_t last_sync_ = 0;  // the run's last synchronization
  std::int64_t a_ = 0;
  std::int64_t b_ = 0;
  std::int64_t dense_ = 0;  // parameters that are dense in the AB phase
  std::int64_t fixed_ = 0;  // parameters that are never factored
};

}  // namespace

TrafficPlan ab_traffic(
    const MethodSetup& setup,
    const RunLength& run,
    const ModelSizes& sizes,
    int rank,
    const StepTraffic& beside) {
  return Planner(setup, sizes, rank).plan(run, beside);
}

}  // namespace abtrain::methods
