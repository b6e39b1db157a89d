#include "train/summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped.h"
#include "base/rows.h"
#include "compress/schemes.h"
#include "methods/method_kind.h"
#include "run_folder/checkpoint.h"
#include "run_folder/checkpoint_files.h"
#include "run_folder/recorder.h"
#include "train/waiting.h"

namespace abtrain::train {

namespace {

using nlohmann::ordered_json;

// Name of the reducer whose figures the run has: that of dense steps or, for methods with local
// steps, that of the synchronizations.
std::string reducer_name(const config::RunOptions& options) {
  const compress::ReducerOptions& own = methods::kind_of(options.method).factors_weights
                                            ? options.method.full_phase.reducer
                                            : options.method.outer.wire;
  const compress::ReducerOptions& reducer = own.or_else(options.reducer);
  return compress::compresses(reducer)
             ? *reducer.name
             : formatted("plain {}", compress::dtype_name(compress::plain_dtype(reducer)));
}

std::string percent(const ordered_json& value, int decimals) {
  return value.is_null() ? "n/a" : formatted("{:.{}f} %", 100 * value.get<double>(), decimals);
}

}  // namespace

std::string percent_of_data_parallel(double share) {
  return formatted("{:.{}f} %", 100 * share, share < 1e-3 ? 3 : 1);
}

double data_parallel_bytes(
    std::int64_t parameters, std::int64_t steps, std::int64_t workers, std::int64_t element_size) {
  const auto n = static_cast<double>(workers);
  return 2 * (n - 1) / n * static_cast<double>(parameters) * static_cast<double>(element_size) *
         static_cast<double>(steps);
}

ordered_json summarize(
    const config::RunOptions& options, const TrainResult& result,
    const std::vector<std::string>& hosts) {
  const std::vector<WorkerFigures>& workers = result.workers;
  const std::int64_t dense = result.model->dense_parameters();
  const std::int64_t stored = result.model->stored_parameters();
  WorkerFigures sum;
  double bytes_max = 0;
  double trained_max = 0;
  for (const WorkerFigures& w : workers) {
    sum = sum + w;
    bytes_max = std::max(bytes_max, w.traffic.total());
    trained_max = std::max(trained_max, w.trained_parameters);
  }
  const auto mean = [&](double all) { return all / static_cast<double>(workers.size()); };
  const auto traffic = [&](double all) { return std::llround(mean(all)); };
  const double bytes = mean(sum.traffic.total());
  ordered_json summary = {
      {"name", options.name},
      {"method", options.method.name},
      {"model", options.model.name},
      {"data", options.data.name},
      {"seed", options.seed}};
  if (options.branch_from) {
    const auto [run, checkpoint] = run_folder::split_run_name(*options.branch_from);
    const std::size_t prefix = std::string_view(run_folder::kStepPrefix).size();
    summary["branched_from"] = {{"run", run}, {"step", std::stoll(checkpoint.substr(prefix))}};
  }
  summary.update(score_json(result.test));
  summary.update(ordered_json{
      {"compression_ratio", static_cast<double>(dense) / static_cast<double>(stored)},
      {"parameters",
       {{"dense", dense}, {"stored", stored}, {"trained_by_a_worker", std::llround(trained_max)}}},
      {"traffic",
       {{"bytes_per_worker", std::llround(bytes)},
        {"bytes_max", std::llround(bytes_max)},
        {"vs_fp32",
         ratio_or_null(bytes, data_parallel_bytes(dense, result.steps, options.workers, 4))},
        {"vs_bf16",
         ratio_or_null(bytes, data_parallel_bytes(dense, result.steps, options.workers, 2))},
        {"by_purpose",
         {{"gradient", traffic(sum.traffic.gradient)},
          {"sync", traffic(sum.traffic.sync)},
          {"factors", traffic(sum.traffic.factors)},
          {"orders", traffic(sum.traffic.orders)},
          {"metrics", traffic(sum.traffic.metrics)}}},
        {"by_phase",
         {{"full", traffic(sum.traffic.full_phase)},
          {"ab", traffic(sum.traffic.ab_phase)},
          {"switches", traffic(sum.traffic.switches)}}},
        {"inside_groups", traffic(sum.traffic.inside_groups)},
        {"between_groups", traffic(sum.traffic.between_groups)}}},
      {"seconds",
       {{"train", mean(sum.seconds.train)},
        {"compute", mean(sum.seconds.compute)},
        {"communication", mean(sum.seconds.communication)},
        {"svd", mean(sum.seconds.svd)},
        {"data", mean(sum.seconds.data)},
        {"evaluate", mean(sum.seconds.evaluate)},
        {"checkpoint", mean(sum.seconds.checkpoint)}}},
      {"reducer",
       {{"name", reducer_name(options)},
        {"encode_seconds", mean(sum.reducer.encode)},
        {"collective_seconds", mean(sum.reducer.collective)},
        {"decode_seconds", mean(sum.reducer.decode)},
        {"vnmse", ratio_or_null(mean(sum.reducer.vnmse_sum), mean(sum.reducer.vnmse_count))}}},
      {"steps", result.steps},
      {"workers", options.workers},
      {"layers", run_folder::layers_json(result.layers)}});
  if (workers.size() > 1) {
    const auto spent = mapped(workers, &WorkerFigures::seconds);
    const Waiting waiting = find_waiting(spent);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      ordered_json one = {{"host", hosts.at(i)}};
      one.update(times_json(spent, waiting, i));
      summary["by_worker"].push_back(one);
    }
    summary["slowest_worker"] = waiting.slowest;
  }
  if (result.train_loss) {
    summary["train_loss"] = *result.train_loss;
  }
  if (result.before) {
    summary["before"] = score_json(*result.before);
  }
  return summary;
}

namespace {

std::string table_of(
    const config::RunOptions& options, const ordered_json& s, const std::string& folder,
    bool names_folder) {
  std::string out;
  const auto row = [&](const std::string& label, const std::string& value) {
    out += "  " + pad(label, 18) + value + "\n";
  };
  const ordered_json& traffic = s.at("traffic");
  const ordered_json& time = s.at("seconds");
  const auto bytes = [&](const ordered_json& value) { return human_bytes(value.get<double>()); };
  out += formatted(
      "{}: {}, {} on {}, {}{}{} steps\n", options.name, options.method.name, options.model.name,
      options.data.name, options.workers, options.workers == 1 ? " worker, " : " workers, ",
      s.at("steps").get<std::int64_t>());
  // Only these methods merge the factors of several groups into the final model.
  const char* whose =
      methods::kind_of(options.method).factors_weights ? " of the merged model" : "";
  using Named = std::pair<const char*, const ordered_json*>;
  const auto sums = [](const std::vector<Named>& parts, const auto& in_words) {
    std::vector<std::string> words;
    for (const Named& part : parts) {
      if (part.second->get<double>() > 0) {
        words.push_back(formatted("{} {}", part.first, in_words(*part.second)));
      }
    }
    return words.empty() ? "none" : join(words, ", ");
  };
  if (s.contains("bits_per_byte")) {
    row("bits per byte",
        formatted(
            "{:.4f}{} (perplexity {:.4g}, loss {:.4f})", s.at("bits_per_byte").get<double>(), whose,
            s.at("perplexity").get<double>(), s.at("loss").get<double>()));
  } else if (s.contains("r2")) {
    row("R²",
        formatted(
            "{:.4f}{} (loss {:.4g})", s.at("r2").get<double>(), whose, s.at("loss").get<double>()));
  } else {
    row("accuracy",
        formatted(
            "{}{} (loss {:.4f})", percent(s.at("accuracy"), 2), whose, s.at("loss").get<double>()));
  }
  if (s.contains("before")) {
    const ordered_json& before = s.at("before");
    row("  before", before.contains("bits_per_byte")
                        ? formatted("{:.4f}", before.at("bits_per_byte").get<double>())
                    : before.contains("r2") ? formatted("{:.4f}", before.at("r2").get<double>())
                                            : percent(before.at("accuracy"), 2));
  }
  row(config::keeps_base(options) ? "beside its base" : "compression",
      formatted(
          "{:.2f}:1 ({} of {} parameters; a worker trains {})",
          s.at("compression_ratio").get<double>(),
          with_commas(s.at("parameters").at("stored").get<std::int64_t>()),
          with_commas(s.at("parameters").at("dense").get<std::int64_t>()),
          with_commas(s.at("parameters").at("trained_by_a_worker").get<std::int64_t>())));
  if (traffic.at("vs_fp32").is_null()) {
    row("traffic", "none: one worker");
  } else {
    row("traffic", formatted(
                       "{} sent per worker: {} of fp32 data parallel, {} of bf16",
                       bytes(traffic.at("bytes_per_worker")),
                       percent_of_data_parallel(traffic.at("vs_fp32").get<double>()),
                       percent_of_data_parallel(traffic.at("vs_bf16").get<double>())));
    const ordered_json& purpose = traffic.at("by_purpose");
    row("  by purpose", formatted(
                            "{}; metrics, not included: {}",
                            sums(
                                {{"gradients", &purpose.at("gradient")},
                                 {"sync", &purpose.at("sync")},
                                 {"factors", &purpose.at("factors")},
                                 {"orders", &purpose.at("orders")}},
                                bytes),
                            bytes(purpose.at("metrics"))));
    const ordered_json& phase = traffic.at("by_phase");
    if (phase.at("ab") > 0 || phase.at("switches") > 0) {
      row("  by phase", sums(
                            {{"full", &phase.at("full")},
                             {"ab", &phase.at("ab")},
                             {"switches", &phase.at("switches")}},
                            bytes));
    }
  }
  const auto seconds = [](const ordered_json& value) { return human_seconds(value.get<double>()); };
  row("time", formatted(
                  "{} training: {}; evaluation {}", seconds(time.at("train")),
                  sums(
                      {{"compute", &time.at("compute")},
                       {"communication", &time.at("communication")},
                       {"SVD", &time.at("svd")},
                       {"data", &time.at("data")}},
                      seconds),
                  seconds(time.at("evaluate"))));
  if (s.contains("by_worker")) {
    const ordered_json& all = s.at("by_worker");
    const auto slowest = s.at("slowest_worker").get<std::size_t>();
    const auto host = all.at(slowest).at("host").get<std::string>();
    std::vector<std::string> ranges;
    for (const char* key : {"compute", "waiting", "communication"}) {
      std::vector<double> values;
      for (const ordered_json& one : all) {
        values.push_back(one.at(key).get<double>());
      }
      const auto [least, most] = std::ranges::minmax(values);
      const double sum = std::accumulate(values.begin(), values.end(), 0.0);
      ranges.push_back(formatted(
          "{} {} to {} (mean {})", key, human_seconds(least), human_seconds(most),
          human_seconds(sum / static_cast<double>(all.size()))));
    }
    row("  by worker",
        formatted("{}; slowest: worker {} on {}", join(ranges, ", "), slowest, host));
  }
  const ordered_json& reducer = s.at("reducer");
  const double coding =
      reducer.at("encode_seconds").get<double>() + reducer.at("decode_seconds").get<double>();
  if (!traffic.at("vs_fp32").is_null()) {
    row("  reducer",
        formatted(
            "{}: encode and decode {} ({} of the training time, part of "
            "compute){}",
            reducer.at("name").get<std::string>(), human_seconds(coding),
            percent(ratio_or_null(coding, time.at("train").get<double>()), 1),
            reducer.at("vnmse").is_null()
                ? ""
                : formatted("; error of the mean {}", percent(reducer.at("vnmse"), 2))));
  }
  if (!s.at("layers").empty()) {
    std::size_t width = 16;
    for (const ordered_json& l : s.at("layers")) {
      width = std::max(width, l.at("name").get<std::string>().size());
    }
    // Adapters that begin with a product of zero cut nothing.
    const bool cuts = std::ranges::any_of(s.at("layers"), [](const ordered_json& l) {
      return l.at("first_energy").get<double>() > 0;
    });
    out += formatted(
        "  {:<{}}{:>8}{:>8}{:>8}{}\n", "layer", width + 2, "m", "n", "rank",
        cuts ? "  energy kept: first cut   last" : "");
    for (const ordered_json& l : s.at("layers")) {
      const auto rank = l.at("rank").get<std::int64_t>();
      out += formatted(
          "    {:<{}}{:>8}{:>8}{:>8}{}\n", l.at("name").get<std::string>(), width,
          l.at("m").get<std::int64_t>(), l.at("n").get<std::int64_t>(),
          rank > 0 ? linalg::rank_text(rank, l.value("blocks", std::int64_t{1})) : "dense",
          cuts ? formatted(
                     "{:>24}{:>9}", percent(l.at("first_energy"), 1), percent(l.at("energy"), 1))
               : "");
    }
  }
  const ordered_json sparsity = s.value("sparsity", ordered_json());
  if (!sparsity.is_null()) {
    row("sparsity", formatted(
                        "{} of the weights are zero; {} nonzero parameters take {} (dense "
                        "{})",
                        percent(sparsity.at("zeros"), 2),
                        with_commas(sparsity.at("nonzero_parameters").get<std::int64_t>()),
                        bytes(sparsity.at("sparse_bytes")), bytes(sparsity.at("dense_bytes"))));
    for (const ordered_json& l : sparsity.at("layers")) {
      row("  " + l.at("name").get<std::string>(),
          formatted(
              "{} of {}", percent(l.at("zeros"), 2),
              with_commas(l.at("numel").get<std::int64_t>())));
    }
  }
  const ordered_json damaged = s.value("damaged_images", ordered_json());
  if (!damaged.is_null() && damaged.at("count") > 0) {
    row("damaged images",
        formatted(
            "{} left out: {}{}", with_commas(damaged.at("count").get<std::int64_t>()),
            damaged.at("files").at(0).get<std::string>(), damaged.at("count") > 1 ? ", ..." : ""));
  }
  if (names_folder) {
    row("files", folder);
  }
  return out;
}

}  // namespace

std::string report_table(
    const config::RunOptions& options, const ordered_json& summary, const std::string& folder,
    bool names_folder) {
  try {
    return table_of(options, summary, folder, names_folder);
  } catch (const ordered_json::exception& error) {
    throw Error(
        ErrorKind::DamagedData,
        formatted(
            "{}/summary.json: expected the summary of a run; it is damaged: {}", folder,
            error.what()));
  }
}

}  // namespace abtrain::train
