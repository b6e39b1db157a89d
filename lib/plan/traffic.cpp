#include "plan/traffic.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/mapped.h"
#include "base/rows.h"
#include "base/text.h"
#include "methods/method_kind.h"
#include "orders/difference_wire.h"
#include "orders/order_kind.h"
#include "plan/bounds.h"
#include "train/summary.h"

namespace abtrain::plan {

namespace {

// Bytes of the gradient differences that a member sends for the example order: after each batch or,
// if the order's unit is the microbatch, after every other step.
std::int64_t difference_bytes(
    const config::RunOptions& options, std::int64_t numel, compress::Member member) {
  return orders::difference_bytes(
      options.order, numel, config::balances_examples(options) ? options.data.batch_size / 2 : 1,
      member.members, member.rank);
}

// The traffic of the example order in a dense step, as text.
std::string order_text(const config::RunOptions& options, std::int64_t parameters) {
  const auto workers = static_cast<int>(options.workers);
  std::int64_t sum = 0;
  for (int r = 0; r < workers; ++r) {
    sum += difference_bytes(options, parameters, {workers, r});
  }
  return formatted(
      "{}{} ({})", human_bytes(static_cast<double>(sum) / workers),
      config::balances_examples(options) ? " per batch" : " every other step",
      orders::name_of(options.order.wire));
}

std::vector<methods::TrafficRow> rows_of(
    const config::RunOptions& options, const RunLength& length) {
  const methods::MethodKind& kind = methods::kind_of(options.method);
  return kind.traffic_rows(kind.timeline(options.method, length));
}

// The mean over the workers; 0 if `bytes` is null.
double mean_of(
    const std::vector<methods::TrafficPlan>& workers, std::int64_t methods::TrafficPlan::*bytes) {
  std::int64_t sum = 0;
  for (const methods::TrafficPlan& worker : workers) {
    sum += bytes == nullptr ? 0 : worker.*bytes;
  }
  return static_cast<double>(sum) / static_cast<double>(workers.size());
}

}  // namespace

methods::StepTraffic order_traffic(const config::RunOptions& options, const RunLength& length) {
  if (!orders::kind_of(options.order).decides_together) {
    return {};
  }
  const std::int64_t per_step = config::balances_examples(options) ? options.train.accumulate : 0;
  return [=, &options](
             std::int64_t first, std::int64_t end, std::int64_t numel, compress::Member member) {
    std::int64_t times = per_step * (end - first);
    // Differences are between the gradients of two steps of an epoch, of the same parameters.
    for (std::int64_t t = first + 1; per_step == 0 && t < end; ++t) {
      times += t % length.steps_per_epoch % 2;
    }
    return times * difference_bytes(options, numel, member);
  };
}

std::vector<methods::TrafficPlan> traffic_of_workers(
    const config::RunOptions& options, const methods::ModelSizes& sizes, const RunLength& length) {
  const methods::StepTraffic beside = order_traffic(options, length);
  std::vector<methods::TrafficPlan> workers;
  for (int rank = 0; rank < options.workers; ++rank) {
    workers.push_back(
        methods::plan_traffic(config::method_setup(options), length, sizes, rank, beside));
  }
  return workers;
}

double planned_bytes(
    const config::RunOptions& options, const methods::ModelSizes& sizes, const RunLength& length) {
  return mean_of(traffic_of_workers(options, sizes, length), &methods::TrafficPlan::total);
}

nlohmann::ordered_json traffic_json(
    const config::RunOptions& options, const methods::ModelSizes& sizes, const RunLength& length) {
  const auto workers = traffic_of_workers(options, sizes, length);
  nlohmann::ordered_json out;
  for (const methods::TrafficRow& each : rows_of(options, length)) {
    out[each.key] = mean_of(workers, each.bytes);
  }
  const double whole = mean_of(workers, &methods::TrafficPlan::total);
  out["whole_run"] = whole;
  out["vs_fp32"] = ratio_or_null(
      whole, train::data_parallel_bytes(sizes.parameters, length.steps, options.workers, 4));
  return out;
}

std::string traffic_text(
    const config::RunOptions& options, const std::vector<config::PlannedSizes>& possible,
    const RunLength& length) {
  const auto ends = mapped(possible, [&](const config::PlannedSizes& planned) {
    return traffic_json(options, planned.sizes, length);
  });
  const auto figure = [&](const char* key, const auto& text) {
    return between(
        bounds_of(ends, [&](const auto& end) { return end.at(key).template get<double>(); }), text);
  };
  std::string out = "\ntraffic (bytes sent per worker, mean)\n";
  for (const methods::TrafficRow& each : rows_of(options, length)) {
    out += row(each.label, each.bytes == nullptr ? "none" : figure(each.key, human_bytes));
  }
  if (orders::kind_of(options.order).decides_together) {
    out += row("example order", order_text(options, possible.front().sizes.parameters));
  }
  out +=
      row("whole run", ends.front().at("vs_fp32").is_null()
                           ? "none: one worker"
                           : formatted(
                                 "{}, {} of fp32 data parallel", figure("whole_run", human_bytes),
                                 figure("vs_fp32", train::percent_of_data_parallel)));
  return out;
}

}  // namespace abtrain::plan
