// The MethodKinds of local-sgd and diloco.
#include <algorithm>
#include <cmath>

#include "base/options.h"
#include "base/rows.h"
#include "base/scalars.h"
#include "base/text.h"
#include "compress/gradient_exchange.h"
#include "compress/schemes.h"
#include "methods/average.h"
#include "methods/gradient_reduction.h"
#include "methods/local/fragment.h"
#include "methods/local/plan.h"
#include "methods/local/training.h"
#include "methods/method_kind.h"
#include "methods/outer_step.h"

namespace abtrain::methods {

namespace {

void add_local_fields(Fields& f, MethodOptions& o) {
  f.choice<Averaged>(
      "average", o.average,
      {{"params", Averaged::Params}, {"params+moments", Averaged::ParamsAndMoments}},
      "what is averaged in addition to running statistics");
}

void add_fragment_fields(Fields& f, MethodOptions& o) {
  f.integer(
      "fragments", o.fragments, between(1, 4096),
      "parts of the model that are synchronized in turn, each every "
      "sync_every steps");
  f.integer(
      "delay", o.delay, between(0, kMaxSteps),
      "steps between the start of a synchronization and the use of "
      "its result; less than sync_every / fragments");
  f.number(
      "mixing", o.mixing, above_to(0, 1),
      "weight of the synchronized parameters when a worker mixes them with its own; 1: "
      "they replace its own");
}

Timeline local_events(const MethodOptions& options, const RunLength& run) {
  return local_timeline(make_local_plan(options, run));
}

TrafficPlan local_traffic(
    const MethodSetup& setup, const RunLength& run, const ModelSizes& sizes, int rank,
    const StepTraffic& beside) {
  const compress::ReducerOptions& sent = setup.options.outer.wire.or_else(setup.reducer);
  const compress::Member world{setup.workers, rank};
  const LocalPlan plan = make_local_plan(setup.options, run);
  const at::ScalarType type = compress::plain_dtype(sent);
  const auto wire = static_cast<std::int64_t>(c10::elementSize(type));
  const std::int64_t buffers = world.all_reduce(sizes.buffers, 4).bytes;
  const compress::ExchangePlan gradients(setup.reducer, sizes.dense, world);
  TrafficPlan result{
      .full_step = gradients.usual_bytes(),
      .sync = buffers,
      // Includes the average of all parameters at the end of the run.
      .total = gradients.bytes_between(0, plan.warmup) +
               (beside ? beside(0, plan.warmup, sizes.parameters, world) : 0) +
               world.all_reduce(sizes.parameters, wire).bytes + buffers};

  // Besides its own change, the last fragment of a round sends moments and running statistics.
  if (plan.with_moments) {
    const auto each = static_cast<std::int64_t>(c10::elementSize(moment_wire(type)));
    result.sync += world.all_reduce(sizes.moments * sizes.parameters, each).bytes;
  }
  const std::int64_t rest = result.sync;
  std::vector<compress::ExchangePlan> exchanges;
  for (Fragment& fragment : cut_fragments(sizes.dense, sizes.weights, plan.fragments)) {
    exchanges.emplace_back(sent, std::move(fragment.slots), world);
    result.sync += exchanges.back().usual_bytes();
  }
  for (const Stretch& s : local_timeline(plan).stretches) {
    if (s.after == Event::SynchronizeFragment) {
      const std::int64_t begin = s.first + s.steps;
      result.total += exchanges[static_cast<std::size_t>(s.fragment)].bytes_between(
                          begin, begin + s.times * s.every, s.every) +
                      (plan.ends_round(s.fragment) ? s.times * rest : 0);
    }
  }
  return result;
}

std::vector<TrafficRow> local_rows(const Timeline& timeline) {
  std::vector<TrafficRow> rows;
  if (timeline.steps(Over::World) > 0) {
    rows.push_back({"warm-up step", "warm_up_step", &TrafficPlan::full_step});
  }
  rows.push_back({"local step", "local_step"});
  rows.push_back({"synchronization", "synchronization", &TrafficPlan::sync});
  return rows;
}

void check_local(const MethodSetup& setup, const StatedLength& length, Conflicts& out) {
  check_warmup("method.warmup_steps", setup.options.warmup_steps, length, "local step", out);
  const compress::ReducerOptions& wire = setup.options.outer.wire;
  if (wire.name) {
    compress::check(wire, "method.outer.wire", setup.workers, out);
  }
}

void check_fragments(const MethodSetup& setup, const StatedLength& length, Conflicts& out) {
  const MethodOptions& o = setup.options;
  check_local(setup, length, out);
  if (o.sync_every.unit != Duration::Unit::Steps) {
    return;
  }
  const double interval = std::max(1.0, std::round(o.sync_every.value));
  const bool too_many = static_cast<double>(o.fragments) > interval;
  conflict_if(
      too_many, out, {"method.fragments", "method.sync_every", "method.name"},
      "expected at most method.sync_every ({}), got {}", print_duration(o.sync_every), o.fragments);
  conflict_if(
      !too_many && static_cast<double>(o.delay * o.fragments) >= interval, out,
      {"method.delay", "method.fragments", "method.sync_every", "method.name"},
      "expected less than method.sync_every / method.fragments ({}{}), "
      "got {}",
      print_duration(o.sync_every), o.fragments > 1 ? formatted(" / {}", o.fragments) : "",
      o.delay);
}

void check_local_run(const MethodOptions& options, const RunLength& run, const nn::Model& model) {
  cut_fragments(
      dense_slots(model), nn::weight_positions(model), make_local_plan(options, run).fragments);
}

std::vector<std::string> local_notes(const MethodSetup& setup, const RunLength& run) {
  const LocalPlan plan = make_local_plan(setup.options, run);
  const auto synchronized = std::ranges::count(
      local_timeline(plan).stretches, Event::SynchronizeFragment, &Stretch::after);
  if (synchronized == 0) {
    return {formatted(
        "method.sync_every: the first synchronization would be used after {} "
        "steps, but the run has {}: {} when it ends",
        plan.warmup + plan.interval / plan.fragments + plan.delay, plan.steps,
        plan.outer.rule != OuterRule::Average ? "no outer step is taken, and the workers meet only"
                                              : "the workers meet only")};
  }
  if (synchronized < plan.fragments) {
    return {formatted(
        "method.sync_every: {} of {} fragments are not synchronized before the "
        "run's {} steps end",
        plan.fragments - synchronized, plan.fragments, plan.steps)};
  }
  return {};
}

std::string local_plan_text(const MethodSetup& setup, const RunLength& run) {
  const LocalPlan plan = make_local_plan(setup.options, run);
  std::string text = formatted(
      "{} data-parallel steps, then each worker trains alone; every {} steps "
      "it synchronizes",
      plan.warmup, plan.interval);
  if (plan.fragments > 1) {
    text += formatted(" each of {} fragments, in turn", plan.fragments);
  }
  if (plan.delay > 0) {
    text += formatted(", and the result is used {} steps later", plan.delay);
  }
  return row("phases", text);
}

// Counts LocalTraining's buffers: x, the outer velocity, and the change of one fragment.
double copies(const MethodOptions& options) {
  const double fragments =
      &kind_of(options) == &kDiloco ? static_cast<double>(options.fragments) : 1;
  return 1 + (outer_step_of(options).has_velocity() ? 1 : 0) + 1 / fragments;
}

}  // namespace

const MethodKind kLocalSgd = {
    .name = "local-sgd",
    .make = make<LocalTraining>,
    .timeline = local_events,
    .traffic = local_traffic,
    .traffic_rows = local_rows,
    .add_fields = add_local_fields,
    .copies = copies,
    .check = check_local,
    .check_run = check_local_run,
    .notes = local_notes,
    .plan_text = local_plan_text};

const MethodKind kDiloco = {
    .name = "diloco",
    .make = make<LocalTraining>,
    .timeline = local_events,
    .traffic = local_traffic,
    .traffic_rows = local_rows,
    .add_fields = add_fragment_fields,
    .outer = OuterRule::Nesterov,
    .copies = copies,
    .check = check_fragments,
    .check_run = check_local_run,
    .notes = local_notes,
    .plan_text = local_plan_text};

}  // namespace abtrain::methods
