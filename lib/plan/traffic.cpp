#include "plan/traffic.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/rows.h"
#include "base/text.h"
#include "methods/method_kind.h"
#include "orders/difference_wire.h"
#include "orders/order_kind.h"
#include "orders/order_traffic.h"
#include "train/summary.h"

namespace abtrain::plan {

namespace {

// What the example order sends in a dense step.
std::string order_text(
    const config::RunOptions& options,
    std::int64_t parameters) {
  const auto workers = static_cast<int>(options.workers);
  const bool examples = config::balances_examples(options);
  const std::int64_t pairs = examples ? options.data.batch_size / 2 : 1;
  std::int64_t sum = 0;
  for (int r = 0; r < workers; ++r) {
    sum +=
        orders::difference_bytes(options.order, parameters, pairs, workers, r);
  }
  return formatted(
      "{}{} ({})",
      human_bytes(static_cast<double>(sum) / workers),
      examples ? " per batch" : " every other step",
      orders::name_of(options.order.wire));
}

methods::TrafficPlan sum_over_workers(
    const config::RunOptions& options,
    const methods::ModelSizes& sizes,
    const RunLength& length) {
  const auto workers = static_cast<int>(options.workers);
  const methods::StepTraffic beside = order_traffic(options, length);
  methods::TrafficPlan sum;
  for (int r = 0; r < workers; ++r) {
    const methods::TrafficPlan p = methods::plan_traffic(
        config::method_setup(options), length, sizes, r, beside);
    sum.full_step += p.full_step;
    sum.ab_step += p.ab_step;
    sum.sync += p.sync;
    sum.decompose += p.decompose;
    sum.total += p.total;
  }
  return sum;
}

// `bytes`: per worker, in the whole run. Nothing where data parallel training
// sends nothing, because there is only one worker.
std::optional<double> share_of_fp32(
    double bytes,
    const config::RunOptions& options,
    const methods::ModelSizes& sizes,
    const RunLength& length) {
  const double baseline = train::data_parallel_bytes(
      sizes.parameters, length.steps, options.workers, 4);
  return baseline > 0 ? std::optional(bytes / baseline) : std::nullopt;
}

}  // namespace

double planned_bytes(
    const config::RunOptions& options,
    const methods::ModelSizes& sizes,
    const RunLength& length) {
  return static_cast<double>(sum_over_workers(options, sizes, length).total) /
         static_cast<double>(options.workers);
}

std::string traffic_text(
    const config::RunOptions& options,
    const methods::ModelSizes& sizes,
    const RunLength& length) {
  const auto workers = static_cast<int>(options.workers);
  const methods::TrafficPlan sum = sum_over_workers(options, sizes, length);
  const auto mean = [&](std::int64_t bytes) {
    return human_bytes(static_cast<double>(bytes) / workers);
  };
  std::string out = "\ntraffic (bytes sent per worker, mean)\n";
  const methods::MethodKind& kind = methods::kind_of(options.method);
  for (const methods::TrafficRow& each :
       kind.traffic_rows(kind.timeline(options.method, length))) {
    out +=
        row(each.label, each.bytes == nullptr ? "none" : mean(sum.*each.bytes));
  }
  if (orders::kind_of(options.order).decides_together) {
    out += row("example order", order_text(options, sizes.parameters));
  }
  const std::optional<double> share = share_of_fp32(
      static_cast<double>(sum.total) / workers, options, sizes, length);
  out +=
      row("whole run",
          share ? formatted(
                      "{}, {} of fp32 data parallel",
                      mean(sum.total),
                      train::percent_of_data_parallel(*share))
                : "none: one worker");
  return out;
}

nlohmann::ordered_json traffic_json(
    const config::RunOptions& options,
    const methods::ModelSizes& sizes,
    const RunLength& length) {
  const auto workers = static_cast<double>(options.workers);
  const methods::TrafficPlan sum = sum_over_workers(options, sizes, length);
  const methods::MethodKind& kind = methods::kind_of(options.method);
  nlohmann::ordered_json out;
  for (const methods::TrafficRow& each :
       kind.traffic_rows(kind.timeline(options.method, length))) {
    std::string key = each.label;
    std::ranges::replace_if(
        key, [](char c) { return c == ' ' || c == '-'; }, '_');
    std::ranges::transform(key, key.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    out[key] = each.bytes == nullptr
                   ? 0.0
                   : static_cast<double>(sum.*each.bytes) / workers;
  }
  const double whole = static_cast<double>(sum.total) / workers;
  const std::optional<double> share =
      share_of_fp32(whole, options, sizes, length);
  out["whole_run"] = whole;
  out["vs_fp32"] =
      share ? nlohmann::ordered_json(*share) : nlohmann::ordered_json();
  return out;
}

methods::StepTraffic order_traffic(
    const config::RunOptions& options,
    const RunLength& length) {
  return orders::order_traffic(
      options.order, options.data.batch_size, options.train.accumulate, length);
}

}  // namespace abtrain::plan
