#include "methods/local/traffic.h"

#include "comm/traffic.h"
#include "compress/gradient_exchange.h"
#include "compress/schemes.h"
#include "methods/local/fragment.h"
#include "methods/local/plan.h"
#include "methods/outer_step.h"

namespace abtrain::methods {

TrafficPlan local_traffic(
    const MethodSetup& setup,
    const RunLength& run,
    const ModelSizes& sizes,
    int rank,
    const StepTraffic& beside) {
  const MethodOptions& options = setup.options;
  const compress::ReducerOptions& reducer = setup.reducer;
  const int workers = setup.workers;
  const LocalPlan plan = make_local_plan(options, run);
  const Timeline timeline = local_timeline(plan);
  const auto all_reduce = [&](std::int64_t numel, std::int64_t size) {
    return comm::all_reduce_bytes(numel, size, setup.workers, rank);
  };
  TrafficPlan result;

  compress::ExchangePlan gradients(reducer, sizes.dense);
  result.full_step = gradients.usual_bytes(workers, rank);
  result.total =
      gradients.bytes_between(workers, rank, 0, plan.warmup) +
      sum_of_steps(beside, 0, plan.warmup, sizes.parameters, workers, rank);

  const compress::ReducerOptions& sent = options.outer.wire.or_else(reducer);
  const at::ScalarType type = compress::plain_dtype(sent);
  const auto wire = static_cast<std::int64_t>(c10::elementSize(type));
  const std::int64_t buffers = all_reduce(sizes.buffers, 4);
  // What is averaged with the last fragment of a round. Moments are not sent in
  // fp16.
  const std::int64_t rest =
      buffers + (plan.with_moments ? all_reduce(
                                         sizes.moments * sizes.parameters,
                                         type == at::kHalf ? 4 : wire)
                                   : 0);
  result.sync = rest;
  std::vector<compress::ExchangePlan> exchanges;
  for (Fragment& fragment :
       cut_fragments(sizes.dense, sizes.weights, plan.fragments)) {
    exchanges.emplace_back(sent, std::move(fragment.slots));
    result.sync += exchanges.back().usual_bytes(workers, rank);
  }
  for (const Stretch& s : timeline.stretches) {
    if (s.after == Event::SynchronizeFragment) {
      const std::int64_t begin = s.first + s.steps;
      result.total +=
          exchanges[static_cast<std::size_t>(s.fragment)].bytes_between(
              workers, rank, begin, begin + s.times * s.every, s.every) +
          (plan.ends_round(s.fragment) ? s.times * rest : 0);
    }
  }
  // The average at the end of the run.
  result.total += all_reduce(sizes.parameters, wire) + buffers;
  return result;
}

}  // namespace abtrain::methods
