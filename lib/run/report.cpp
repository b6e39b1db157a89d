#include "run/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "compress/reducer.h"
#include "run/recorder.h"

namespace abtrain::run {

namespace {

using nlohmann::ordered_json;

template <class Get>
double mean(const std::vector<WorkerFigures>& workers, const Get& get) {
  double sum = 0;
  for (const WorkerFigures& w : workers) {
    sum += get(w);
  }
  return sum / static_cast<double>(workers.size());
}

// a / b, or null where there is nothing to compare with (one worker).
ordered_json share(double a, double b) {
  return b > 0 ? ordered_json(a / b) : ordered_json(nullptr);
}

std::string reducer_name(const RunOptions& options) {
  return compress::make_reducer(options.reducer, options.seed)->name();
}

std::string percent(const ordered_json& value, int decimals) {
  return value.is_null() ? "n/a"
                         : fixed(100 * value.get<double>(), decimals) + " %";
}

}  // namespace

double data_parallel_bytes(
    std::int64_t parameters,
    std::int64_t steps,
    std::int64_t workers,
    std::int64_t element_size) {
  const auto n = static_cast<double>(workers);
  return 2 * (n - 1) / n * static_cast<double>(parameters) *
      static_cast<double>(element_size) * static_cast<double>(steps);
}

ordered_json summarise(const RunOptions& options, const TrainResult& result) {
  const std::vector<WorkerFigures>& workers = result.workers;
  const std::int64_t dense = result.model->dense_parameters();
  const std::int64_t stored = result.model->stored_parameters();
  const auto traffic = [&](double TrafficSplit::*member) {
    return std::llround(mean(
        workers, [&](const WorkerFigures& w) { return w.traffic.*member; }));
  };
  const auto seconds = [&](double TimeSplit::*member) {
    return mean(workers, [&](const WorkerFigures& w) {
      return w.seconds.*member;
    });
  };
  const auto reducer = [&](double ReducerSplit::*member) {
    return mean(workers, [&](const WorkerFigures& w) {
      return w.reducer.*member;
    });
  };
  const double bytes =
      mean(workers, [](const WorkerFigures& w) { return w.traffic.total(); });
  double bytes_max = 0;
  double trained_max = 0;
  for (const WorkerFigures& w : workers) {
    bytes_max = std::max(bytes_max, w.traffic.total());
    trained_max = std::max(trained_max, w.trained_parameters);
  }
  ordered_json summary = {
      {"name", options.name},
      {"method", options.method.name},
      {"model", options.model.name},
      {"data", options.data.name},
      {"seed", options.seed},
      {"accuracy", result.test.accuracy},
      {"loss", result.test.loss},
      {"compression_ratio",
       static_cast<double>(dense) / static_cast<double>(stored)},
      {"parameters",
       {{"dense", dense},
        {"stored", stored},
        {"trained_by_a_worker", std::llround(trained_max)}}},
      {"traffic",
       {{"bytes_per_worker", std::llround(bytes)},
        {"bytes_max", std::llround(bytes_max)},
        {"vs_fp32",
         share(
             bytes,
             data_parallel_bytes(dense, result.steps, options.workers, 4))},
        {"vs_bf16",
         share(
             bytes,
             data_parallel_bytes(dense, result.steps, options.workers, 2))},
        {"by_purpose",
         {{"gradient", traffic(&TrafficSplit::gradient)},
          {"sync", traffic(&TrafficSplit::sync)},
          {"factors", traffic(&TrafficSplit::factors)},
          {"orders", traffic(&TrafficSplit::orders)},
          {"metrics", traffic(&TrafficSplit::metrics)}}},
        {"by_phase",
         {{"full", traffic(&TrafficSplit::full_phase)},
          {"ab", traffic(&TrafficSplit::ab_phase)},
          {"switches", traffic(&TrafficSplit::switches)}}},
        {"inside_groups", traffic(&TrafficSplit::inside_groups)},
        {"between_groups", traffic(&TrafficSplit::between_groups)}}},
      {"seconds",
       {{"train", seconds(&TimeSplit::train)},
        {"compute", seconds(&TimeSplit::compute)},
        {"communication", seconds(&TimeSplit::communication)},
        {"svd", seconds(&TimeSplit::svd)},
        {"data", seconds(&TimeSplit::data)},
        {"evaluate", seconds(&TimeSplit::evaluate)},
        {"checkpoint", seconds(&TimeSplit::checkpoint)}}},
      {"reducer",
       {{"name", reducer_name(options)},
        {"encode_seconds", reducer(&ReducerSplit::encode)},
        {"collective_seconds", reducer(&ReducerSplit::collective)},
        {"decode_seconds", reducer(&ReducerSplit::decode)},
        {"vnmse",
         share(
             reducer(&ReducerSplit::vnmse_sum),
             reducer(&ReducerSplit::vnmse_count))}}},
      {"steps", result.steps},
      {"workers", options.workers},
      {"layers", layers_json(result.layers)}};
  if (result.train_loss) {
    summary["train_loss"] = *result.train_loss;
  }
  return summary;
}

std::string report_table(
    const RunOptions& options,
    const ordered_json& s,
    const std::string& folder) {
  std::string out;
  const auto row = [&](const std::string& label, const std::string& value) {
    out += "  " + label + std::string(label.size() < 18 ? 18 - label.size() : 1, ' ') +
        value + "\n";
  };
  const ordered_json& traffic = s["traffic"];
  const ordered_json& time = s["seconds"];
  const auto bytes = [&](const ordered_json& value) {
    return human_bytes(value.get<double>());
  };
  out += str(
      options.name,
      ": ",
      options.method.name,
      ", ",
      options.model.name,
      " on ",
      options.data.name,
      ", ",
      options.workers,
      options.workers == 1 ? " worker, " : " workers, ",
      s["steps"].get<std::int64_t>(),
      " steps\n");
  row("accuracy",
      str(percent(s["accuracy"], 2),
          " of the merged model (loss ",
          fixed(s["loss"].get<double>(), 4),
          ")"));
  row("compression",
      str(fixed(s["compression_ratio"].get<double>(), 2),
          ":1 (",
          with_commas(s["parameters"]["stored"].get<std::int64_t>()),
          " of ",
          with_commas(s["parameters"]["dense"].get<std::int64_t>()),
          " parameters; a worker trains ",
          with_commas(
              s["parameters"]["trained_by_a_worker"].get<std::int64_t>()),
          ")"));
  if (traffic["vs_fp32"].is_null()) {
    row("traffic", "none: one worker");
  } else {
    row("traffic",
        str(bytes(traffic["bytes_per_worker"]),
            " sent a worker: ",
            percent(traffic["vs_fp32"], 1),
            " of fp32 data parallel, ",
            percent(traffic["vs_bf16"], 1),
            " of bf16"));
    row("  by purpose",
        str("gradients ",
            bytes(traffic["by_purpose"]["gradient"]),
            ", sync ",
            bytes(traffic["by_purpose"]["sync"]),
            ", factors ",
            bytes(traffic["by_purpose"]["factors"]),
            options.order.name == "cd-grab"
                ? ", orders " + bytes(traffic["by_purpose"]["orders"])
                : std::string(),
            "; metrics apart: ",
            bytes(traffic["by_purpose"]["metrics"])));
    row("  by phase",
        str("full ",
            bytes(traffic["by_phase"]["full"]),
            ", ab ",
            bytes(traffic["by_phase"]["ab"]),
            ", switches ",
            bytes(traffic["by_phase"]["switches"])));
  }
  row("time",
      str(human_seconds(time["train"].get<double>()),
          " training: compute ",
          human_seconds(time["compute"].get<double>()),
          ", communication ",
          human_seconds(time["communication"].get<double>()),
          ", SVD ",
          human_seconds(time["svd"].get<double>()),
          ", data ",
          human_seconds(time["data"].get<double>()),
          "; evaluation ",
          human_seconds(time["evaluate"].get<double>())));
  const ordered_json& reducer = s["reducer"];
  const double coding = reducer["encode_seconds"].get<double>() +
      reducer["decode_seconds"].get<double>();
  if (!traffic["vs_fp32"].is_null()) {
    row("  reducer",
        str(reducer["name"].get<std::string>(),
            ": encode and decode ",
            human_seconds(coding),
            " (",
            percent(share(coding, time["train"].get<double>()), 1),
            " of the training), of the compute",
            reducer["vnmse"].is_null()
                ? std::string()
                : str("; error of the mean gradient ",
                      percent(reducer["vnmse"], 2))));
  }
  if (!s["layers"].empty()) {
    out += "  layer                     m       n    rank  energy kept: first cut   last\n";
    for (const ordered_json& l : s["layers"]) {
      const auto pad = [](const std::string& text, std::size_t width) {
        return std::string(text.size() < width ? width - text.size() : 0, ' ') +
            text;
      };
      std::string name = l["name"].get<std::string>();
      name.resize(std::max<std::size_t>(name.size(), 20), ' ');
      const auto rank = l["rank"].get<std::int64_t>();
      out += "    " + name + pad(std::to_string(l["m"].get<int>()), 3) +
          pad(std::to_string(l["n"].get<int>()), 8) +
          pad(rank > 0 ? std::to_string(rank) : "dense", 8) +
          pad(percent(l["first_energy"], 1), 24) +
          pad(percent(l["energy"], 1), 9) + "\n";
    }
  }
  const ordered_json sparsity = s.value("sparsity", ordered_json());
  if (!sparsity.is_null()) {
    row("sparsity",
        str(percent(sparsity["zeros"], 2),
            " of the weights are 0; ",
            with_commas(sparsity["nonzero_parameters"].get<std::int64_t>()),
            " parameters are not, in ",
            bytes(sparsity["sparse_bytes"]),
            " (dense ",
            bytes(sparsity["dense_bytes"]),
            ")"));
    for (const ordered_json& l : sparsity["layers"]) {
      row("  " + l["name"].get<std::string>(),
          str(percent(l["zeros"], 2),
              " of ",
              with_commas(l["numel"].get<std::int64_t>())));
    }
  }
  const ordered_json damaged = s.value("damaged_images", ordered_json());
  if (!damaged.is_null() && damaged["count"] > 0) {
    row("damaged images",
        str(with_commas(damaged["count"].get<std::int64_t>()),
            " left out: ",
            damaged["files"][0].get<std::string>(),
            damaged["count"] > 1 ? ", ..." : ""));
  }
  row("files", folder);
  return out;
}

}  // namespace abtrain::run
