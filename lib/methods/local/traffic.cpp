#include "methods/local/traffic.h"

#include "compress/gradient_exchange.h"
#include "compress/schemes.h"
#include "methods/local/fragment.h"
#include "methods/local/plan.h"
#include "methods/outer_step.h"

namespace abtrain::methods {

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
      // With the average at the end of the run.
      .total = gradients.bytes_between(0, plan.warmup) +
               (beside ? beside(0, plan.warmup, sizes.parameters, world) : 0) +
               world.all_reduce(sizes.parameters, wire).bytes + buffers};

  // What is averaged with the last fragment of a round. Moments are not sent in
  // fp16.
  if (plan.with_moments) {
    result.sync +=
        world.all_reduce(sizes.moments * sizes.parameters, type == at::kHalf ? 4 : wire).bytes;
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

}  // namespace abtrain::methods
