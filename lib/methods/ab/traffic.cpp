#include "methods/ab/traffic.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "compress/gradient_exchange.h"
#include "compress/schemes.h"
#include "methods/ab/gather_layers.h"
#include "methods/ab/outer_state.h"
#include "methods/ab/phase.h"
#include "methods/ab/synchronize.h"
#include "methods/average.h"

namespace abtrain::methods {

namespace {

std::int64_t size_of(at::ScalarType type) {
  return static_cast<std::int64_t>(c10::elementSize(type));
}

// Predicts the bytes that one worker sends while the layers have these ranks.
class Planner {
 public:
  Planner(
      const MethodSetup& setup, const Timeline& timeline, ModelSizes sizes, int rank,
      const StepTraffic& beside, bool swapped = false)
      : setup_(setup),
        timeline_(timeline),
        beside_(beside),
        sizes_(std::move(sizes)),
        world_{setup.workers, rank},
        groups_(make_groups(setup.options, setup.workers)),
        group_{groups_.group_size, rank % groups_.group_size},
        both_(setup.options.trains == Trains::Both),
        swapped_(swapped),
        trains_a_((groups_.role_of(rank) == comm::Role::A) != swapped),
        full_options_(setup.options.full_phase.reducer.or_else(setup.reducer)),
        full_(full_options_, sizes_.dense, world_),
        inside_(setup.reducer, trains_a_ ? sizes_.a : sizes_.b, group_),
        dense_(sizes_.parameters) {
    for (const LayerShape& l : sizes_.layers) {
      dense_ -= l.rank > 0 ? l.m * l.n : 0;
      a_ += l.m * l.rank;
      b_ += l.n * l.rank;
    }
    own_ = both_ ? a_ + b_ : trains_a_ ? a_ : b_;
  }

  // The whole plan, except for its total.
  TrafficPlan events() const {
    return {
        .full_step = full_.usual_bytes(),
        .ab_step = inside_.usual_bytes(),
        .ab_members = group_.members,
        .sync = synchronized(
            timeline_.count(Event::AverageFactors) > 0 ? Event::AverageFactors
            : timeline_.count(Event::Synchronize) > 0  ? Event::Synchronize
                                                       : Event::SynchronizeAndDecompose),
        .decompose = gathered(0, sizes_) + buffers()};
  }

  // From this step on, all occurrences of a stretch send the same bytes.
  std::int64_t steady_from() const {
    return beside_ ? std::numeric_limits<std::int64_t>::max()
                   : std::max(setup_.reducer.dense_steps, full_options_.dense_steps);
  }

  // Bytes of the steps of one occurrence of a stretch, which begins at step `first`.
  std::int64_t steps(const Stretch& s, std::int64_t first) const {
    const std::int64_t end = first + s.steps;
    const bool alone = s.gradients == Over::Group;
    const std::int64_t trained = alone ? dense_ + own_ : sizes_.parameters;
    return (alone ? inside_ : full_).bytes_between(first, end) +
           (beside_ ? beside_(first, end, trained, alone ? group_ : world_) : 0);
  }

  // Bytes of the event that ends a stretch, after which the layers have the sizes of `next`.
  std::int64_t after(const Stretch& s, const Planner& next) const {
    // A decomposition right after a synchronization; layers that were dense are split as dense
    // weights.
    const auto products = [&] {
      return gathered(setup_.options.sync == SyncMode::Full ? 2 : 1, next.sizes_);
    };
    const auto decompose = [&] { return gathered(0, next.sizes_) + buffers(); };
    switch (s.after) {
      case Event::Decompose:
        return decompose();
      case Event::Synchronize:
      case Event::AverageFactors:
        return synchronized(s.after);
      case Event::SynchronizeAndDecompose:
        return synchronized(s.after) + products();
      default:  // the run ends
        break;
    }
    if (s.phase == Phase::Full) {
      return decompose();
    }
    const bool decomposes = setup_.options.sync == SyncMode::Full ||
                            std::ranges::count(sizes_.layers, 0, &LayerShape::rank) > 0;
    return synchronized(Event::None) + (decomposes ? products() : 0);
  }

 private:
  std::int64_t all_reduce(std::int64_t numel, std::int64_t size) const {
    return world_.all_reduce(numel, size).bytes;
  }
  std::int64_t buffers() const {
    return all_reduce(sizes_.buffers, 4);
  }
  // Bytes of a synchronization that ends in the event `after`; the run's last one (None) sends no
  // codes.
  std::int64_t synchronized(Event after) const {
    if (!groups_differ(setup_.options, groups_)) {
      return buffers();
    }
    const OuterState outer(setup_.options);
    const std::int64_t element = size_of(outer.dtype());
    const auto sent = [&](std::int64_t a, std::int64_t b, const auto& form) {
      return FactorExchange::bytes_sent(groups_, world_.rank, a, b, form);
    };
    const auto factors = [&](const auto& form) {
      return both_ ? sent(0, own_, form) : swapped_ ? sent(b_, a_, form) : sent(a_, b_, form);
    };
    // MomentKind::Gradients stands for all kinds that are kept.
    const int moments =
        (outer.averages(optim::MomentKind::Gradients, after) ? sizes_.kept_moments : 0) +
        (outer.averages(optim::MomentKind::Other, after) ? sizes_.moments - sizes_.kept_moments
                                                         : 0);
    const bool coded = outer.codes_dense(after);
    const std::int64_t own = size_of(moment_wire(outer.dtype()));
    const std::int64_t values = coded ? 0 : dense_;
    const std::int64_t whole =
        own == element ? all_reduce(values + moments * dense_, element)
                       : all_reduce(values, element) + all_reduce(moments * dense_, own);
    return buffers() +
           (outer.format() && after != Event::None ? factors(*outer.format()) : factors(element)) +
           (coded ? sent(0, dense_, *outer.format()) : 0) + whole;
  }
  // Bytes that this worker sends for the layers that it decomposes to the ranks of `next`.
  // `factor`: rank of a factored layer's product, divided by the rank of its factors; 0: all layers
  // are dense.
  std::int64_t gathered(std::int64_t factor, const ModelSizes& next) const {
    if (factor == 0 && adapts(setup_.options) && setup_.options.start == AdapterStart::Zero) {
      return 0;
    }
    std::vector<LayerShape> shapes;
    for (const LayerShape& l : sizes_.layers) {
      shapes.push_back({l.m, l.n, factor * l.rank, l.grid});
    }
    std::int64_t own = 0;
    const Owned owned = share_out(shapes, world_.members);
    for (const std::size_t i : owned[static_cast<std::size_t>(world_.rank)]) {
      own += 8 * shapes[i].values() + 4 * factor_numbers(shapes[i], next.layers[i].rank);
    }
    return world_.all_gather(own, 1).bytes;
  }

  const MethodSetup& setup_;
  const Timeline& timeline_;
  const StepTraffic& beside_;
  const ModelSizes sizes_;
  const compress::Member world_;
  const comm::Groups groups_;
  const compress::Member group_;
  const bool both_;
  const bool swapped_;  // groups train the factor that they did not begin with
  const bool trains_a_;
  const compress::ReducerOptions& full_options_;  // reducer of dense steps
  const compress::ExchangePlan full_;             // gradients of dense steps
  const compress::ExchangePlan inside_;           // gradients of AB steps
  std::int64_t a_ = 0;
  std::int64_t b_ = 0;
  std::int64_t own_ = 0;  // numbers in the factors that the worker trains
  std::int64_t dense_;    // parameters that are dense in the AB phase
};

// Calls `body` for each occurrence of each stretch, in order, with the step at which it begins and
// the stretch.
void for_occurrences(
    const Timeline& timeline, const std::function<void(std::int64_t, const Stretch&)>& body) {
  std::vector<std::pair<std::int64_t, const Stretch*>> occurrences;
  for (const Stretch& s : timeline.stretches) {
    for (std::int64_t k = 0; k < s.times; ++k) {
      occurrences.emplace_back(s.first + k * s.every, &s);
    }
  }
  std::ranges::stable_sort(occurrences, {}, &std::pair<std::int64_t, const Stretch*>::first);
  for (const auto& [first, s] : occurrences) {
    body(first, *s);
  }
}

// The bytes of a run in which the ranks change with each decomposition, until they reach those of
// `last`.
std::int64_t annealed_total(
    const MethodOptions& options, const PhasePlan& phases, const Timeline& timeline,
    const Planner& last, const std::function<Planner(double ratio)>& at_ratio) {
  std::int64_t total = 0;
  std::deque<Planner> earlier;
  const Planner* now = &last;  // before the first decomposition, ranks do not matter
  for_occurrences(timeline, [&](std::int64_t first, const Stretch& s) {
    const Planner* next = now;
    // The end of the run may decompose too.
    if (s.after != Event::Synchronize && s.after != Event::AverageFactors) {
      const double ratio = rule_after(options, phases, first + s.steps).ratio;
      next = ratio == options.rank.ratio ? &last : &earlier.emplace_back(at_ratio(ratio));
    }
    total += now->steps(s, first) + now->after(s, *next);
    now = next;
  });
  return total;
}

// The bytes of a run in which groups swap factors after each synchronization.
std::int64_t alternating_total(
    const Timeline& timeline, const Planner& first_roles, const Planner& swapped_roles) {
  std::int64_t total = 0;
  bool swapped = false;
  for_occurrences(timeline, [&](std::int64_t first, const Stretch& s) {
    const Planner& now = swapped ? swapped_roles : first_roles;
    total += now.steps(s, first) + now.after(s, now);
    swapped = swapped != (s.after == Event::AverageFactors);
  });
  return total;
}

}  // namespace

TrafficPlan ab_traffic(
    const MethodSetup& setup, const RunLength& run, const ModelSizes& sizes, int rank,
    const StepTraffic& beside) {
  const PhasePlan phases = make_phase_plan(setup.options, run);
  const Timeline timeline = ab_timeline(phases, run.steps);
  const Planner planner(setup, timeline, sizes, rank, beside);
  TrafficPlan plan = planner.events();
  if (phases.anneal > 0 && sizes.at_ratio) {
    plan.total = annealed_total(setup.options, phases, timeline, planner, [&](double ratio) {
      return Planner(setup, timeline, sizes.at_ratio(ratio), rank, beside);
    });
    return plan;
  }
  if (setup.options.roles == Roles::Alternate) {
    plan.total = alternating_total(
        timeline, planner, Planner(setup, timeline, sizes, rank, beside, /*swapped=*/true));
    return plan;
  }
  for (const Stretch& s : timeline.stretches) {
    for (std::int64_t k = 0; k < s.times;) {
      const std::int64_t first = s.first + k * s.every;
      const std::int64_t times = first >= planner.steady_from() ? s.times - k : 1;
      plan.total += times * planner.steps(s, first);
      k += times;
    }
    plan.total += s.times * planner.after(s, planner);
  }
  return plan;
}

}  // namespace abtrain::methods
