#include "methods/traffic_plan.h"
#include "comm/traffic.h"
#include "compress/average.h"
#include "compress/gradient_exchange.h"
#include "methods/local/fragment.h"
#include "methods/local/plan.h"

namespace abtrain::methods {

TrafficPlan plan_local_traffic(
    const MethodOptions& options,
    const compress::ReducerOptions& reducer,
    const ModelSizes& sizes,
    int workers,
    int rank,
    const RunLength& run,
    const StepTraffic& beside) {
  const LocalPlan plan = make_local_plan(options, run);
  const auto all_reduce = [&](std::int64_t numel, std::int64_t size) {
    return comm::all_reduce_bytes(numel, size, workers, rank);
  };
  TrafficPlan result;

  compress::ExchangePlan gradients(reducer, sizes.dense);
  result.full_step = gradients.usual_bytes(workers, rank);
  result.total = gradients.bytes_between(workers, rank, 0, plan.warmup);
  for (std::int64_t t = 0; beside && t < plan.warmup; ++t) {
    result.total += beside(t, 0, sizes.parameters, workers, rank);
  }

  const auto wire = static_cast<std::int64_t>(
      c10::elementSize(compress::plain_dtype(reducer)));
  const bool half = compress::plain_dtype(reducer) == at::kHalf;
  const bool with_moments = options.name == "local-sgd" &&
                            options.average == Averaged::ParamsAndMoments;
  const std::int64_t buffers = all_reduce(sizes.buffers, 4);
  // What is averaged with the last fragment of a round.
  const std::int64_t rest =
      buffers +
      (with_moments
           ? all_reduce(sizes.moments * sizes.parameters, half ? 4 : wire)
           : 0);
  result.sync = rest;
  std::int64_t f = 0;
  for (Fragment& fragment :
       cut_fragments(sizes.dense, sizes.weights, plan.fragments)) {
    compress::ExchangePlan exchange(reducer, std::move(fragment.slots));
    result.sync += exchange.usual_bytes(workers, rank);
    result.total += exchange.bytes_between(
        workers,
        rank,
        plan.first_of(f),
        plan.steps - plan.delay,
        plan.interval);
    result.total += plan.ends_round(f) ? plan.meetings_of(f) * rest : 0;
    ++f;
  }
  // The average at the end of the run.
  result.total += all_reduce(sizes.parameters, wire) + buffers;
  return result;
}

}  // namespace abtrain::methods
