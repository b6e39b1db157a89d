#include "methods/ab/traffic.h"

#include <algorithm>
#include <limits>

#include "compress/gradient_exchange.h"
#include "compress/schemes.h"
#include "methods/ab/gather_layers.h"
#include "methods/ab/outer_state.h"
#include "methods/ab/phase.h"
#include "methods/ab/synchronize.h"

namespace abtrain::methods {

namespace {

std::int64_t size_of(at::ScalarType type) {
  return static_cast<std::int64_t>(c10::elementSize(type));
}

// Predicts the traffic of one worker.
class Planner {
 public:
  Planner(const MethodSetup& setup, const ModelSizes& sizes, int rank)
      : setup_(setup),
        sizes_(sizes),
        world_{setup.workers, rank},
        full_(setup.options.full_phase.reducer.or_else(setup.reducer)),
        dense_(sizes.parameters),
        fixed_(sizes.parameters) {
    for (const LayerShape& l : sizes.layers) {
      fixed_ -= l.m * l.n;
      dense_ -= l.rank > 0 ? l.m * l.n : 0;
      a_ += l.m * l.rank;
      b_ += l.n * l.rank;
    }
  }

  TrafficPlan plan(const RunLength& run, const StepTraffic& beside) const {
    const MethodOptions& options = setup_.options;
    const comm::Groups groups = make_groups(options, world_.members);
    const Timeline timeline = ab_timeline(make_phase_plan(options, run), run.steps);
    const std::int64_t every = timeline.average_every;
    const bool both = options.trains == Trains::Both;
    const bool own_a = groups.role_of(world_.rank) == comm::Role::A;
    const std::int64_t own = both ? a_ + b_ : own_a ? a_ : b_;
    const compress::Member group{groups.group_size, world_.rank % groups.group_size};
    const compress::ExchangePlan full(
        full_, every > 0 ? std::vector<compress::Slot>() : sizes_.dense, world_);
    const compress::ExchangePlan inside(setup_.reducer, own_a ? sizes_.a : sizes_.b, group);
    TrafficPlan plan{
        .full_step = full.usual_bytes(),
        .ab_step = inside.usual_bytes(),
        .ab_members = group.members};
    const OuterState outer(options);
    const std::int64_t element = size_of(outer.dtype());
    const std::int64_t buffers = all_reduce(sizes_.buffers, 4);
    const auto synchronized = [&](bool coded, bool in_place) {
      if (!groups_differ(options, groups)) {
        return buffers;
      }
      const auto sent = [&](std::int64_t a, std::int64_t b, const auto& form) {
        return FactorExchange::bytes_sent(groups, world_.rank, a, b, form);
      };
      const auto factors = [&](const auto& form) {
        return sent(both ? 0 : a_, both ? own : b_, form);
      };
      const bool has_codes = coded && outer.format();
      return (has_codes && in_place
                  ? sent(0, dense_, *outer.format())
                  : all_reduce(dense_ * (in_place ? 1 : 1 + sizes_.moments), element)) +
             buffers + (has_codes ? factors(*outer.format()) : factors(element));
    };
    const std::int64_t merged = synchronized(/*coded=*/true, /*in_place=*/false);
    const bool averages = timeline.count(Event::AverageFactors) > 0;
    plan.sync = averages ? synchronized(/*coded=*/true, /*in_place=*/true) : merged;
    // The run's last synchronization sends no codes.
    const std::int64_t last_sync = synchronized(/*coded=*/false, /*in_place=*/false);
    plan.decompose = gathered(0) + buffers;
    // Of a synchronization that is followed at once by a decomposition; layers
    // that were dense are decomposed as dense.
    const std::int64_t products = gathered(options.sync == SyncMode::Full ? 2 : 1);

    // Of the steps first .. end - 1 of a stretch.
    const auto steps = [&](Over gradients, std::int64_t first, std::int64_t end) {
      if (gradients == Over::Nobody) {
        return (end - first) / every * average(false);
      }
      const bool alone = gradients == Over::Group;
      const std::int64_t trained = alone ? dense_ + own : sizes_.parameters;
      return (alone ? inside : full).bytes_between(first, end) +
             (beside ? beside(first, end, trained, alone ? group : world_) : 0);
    };
    // Of what happens at the end of a stretch.
    const auto after = [&](const Stretch& s) {
      switch (s.after) {
        case Event::Decompose:
          if (s.gradients == Over::Nobody && s.steps > 0) {
            // In place of the average that would have been due.
            return plan.decompose + average(true) - (s.steps % every == 0 ? average(false) : 0);
          }
          return plan.decompose;
        case Event::Synchronize:
          return merged;
        case Event::SynchronizeAndDecompose:
          return merged + products;
        case Event::AverageFactors:
          return plan.sync;
        default:  // the run ends
          break;
      }
      if (s.phase == Phase::Full) {
        return plan.decompose + (every > 0 ? average(true) : 0);
      }
      const bool decomposes = options.sync == SyncMode::Full ||
                              std::ranges::count(sizes_.layers, 0, &LayerShape::rank) > 0;
      return s.steps == 0 ? 0 : last_sync + (decomposes ? products : 0);
    };
    // Past `dense_steps` all occurrences send the same bytes.
    const std::int64_t steady = beside ? std::numeric_limits<std::int64_t>::max()
                                       : std::max(setup_.reducer.dense_steps, full_.dense_steps);
    for (const Stretch& s : timeline.stretches) {
      for (std::int64_t k = 0; k < s.times;) {
        const std::int64_t first = s.first + k * s.every;
        const std::int64_t times = first >= steady ? s.times - k : 1;
        plan.total += times * steps(s.gradients, first, first + s.steps);
        k += times;
      }
      plan.total += s.times * after(s);
    }
    return plan;
  }

 private:
  std::int64_t all_reduce(std::int64_t numel, std::int64_t size) const {
    return world_.all_reduce(numel, size).bytes;
  }
  // An average of local steps in FULL: the parameters and, at the end of the
  // phase, also the moments of what is never factored.
  std::int64_t average(bool with_moments) const {
    const at::ScalarType wire = compress::plain_dtype(full_);
    // Moments are not sent in fp16.
    const std::int64_t moments = with_moments ? fixed_ * sizes_.moments : 0;
    return all_reduce(sizes_.parameters, size_of(wire)) +
           all_reduce(moments, wire == at::kHalf ? 4 : size_of(wire));
  }
  // Bytes that this worker sends of the layers that it decomposes. `factor`: of
  // the products of factored layers, rank over the factors' rank; 0: all layers
  // are dense.
  std::int64_t gathered(std::int64_t factor) const {
    std::vector<LayerShape> shapes;
    for (const LayerShape& l : sizes_.layers) {
      shapes.push_back({l.m, l.n, factor * l.rank});
    }
    std::int64_t own = 0;
    const Owned owned = share_out(shapes, world_.members);
    for (const std::size_t i : owned[static_cast<std::size_t>(world_.rank)]) {
      own += 8 * spectrum_numbers(setup_.options.svd, shapes[i]) +
             4 * factor_numbers(shapes[i], sizes_.layers[i].rank);
    }
    return world_.all_gather(own, 1).bytes;
  }

  const MethodSetup& setup_;
  const ModelSizes& sizes_;
  const compress::Member world_;
  const compress::ReducerOptions& full_;  // of dense steps
  std::int64_t a_ = 0;
  std::int64_t b_ = 0;
  std::int64_t dense_;  // parameters that are dense in the AB phase
  std::int64_t fixed_;  // parameters that are never factored
};

}  // namespace

TrafficPlan ab_traffic(
    const MethodSetup& setup, const RunLength& run, const ModelSizes& sizes, int rank,
    const StepTraffic& beside) {
  return Planner(setup, sizes, rank).plan(run, beside);
}

}  // namespace abtrain::methods
