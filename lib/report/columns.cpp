#include "report/columns.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"
#include "base/text.h"
#include "report/front.h"

namespace abtrain::report {

namespace {

std::string value_text(const Column& column, double value) {
  return column.decimals < 0 ? formatted("{:.{}g}", value / column.unit, -column.decimals)
                             : formatted("{:.{}f}", value / column.unit, column.decimals);
}

void mark_best(
    const Column& column, const std::vector<std::size_t>& members,
    const std::vector<Setting>& settings, std::vector<Figure>& figures) {
  std::vector<double> values;
  for (const std::size_t i : members) {
    if (figures[i].value && !settings[i].has_diverged()) {
      values.push_back(*figures[i].value);
    }
  }
  if (values.empty()) {
    return;
  }
  const auto [low, high] = std::ranges::minmax(values);
  // Values that are shown as the same text count as equal.
  const std::string best = value_text(column, column.best == Best::Lowest ? low : high);
  for (const std::size_t i : members) {
    figures[i].is_best = value_text(column, low) != value_text(column, high) && figures[i].value &&
                         value_text(column, *figures[i].value) == best &&
                         !settings[i].has_diverged() &&
                         !(column.is_time && runs_beside_others(settings[i]));
  }
}

}  // namespace

Figure Column::figure(const Setting& setting) const {
  Figure figure;
  const std::vector<double> values = setting.values(of_run);
  if (values.empty()) {
    return figure;
  }
  figure.value = is_median ? median(values) : mean(values);
  const std::size_t missed = static_cast<std::size_t>(
      std::ranges::count_if(values, [](double value) { return std::isinf(value); }));
  if (missed == 0) {
    figure.spread = standard_deviation(values);
  } else {
    figure.note = formatted("{} of {}", values.size() - missed, values.size());
  }
  return figure;
}

std::vector<Column> all_columns(std::optional<double> target) {
  using enum Best;
  std::vector<Column> columns = {
      {.key = "accuracy",
       .title = "accuracy, %",
       .help = "accuracy of the final, merged model on the test set",
       .unit = 0.01,
       .decimals = 2,
       .best = Highest,
       .is_default = true,
       .of_run = of_summary(&Summary::accuracy)},
      {.key = "bits_per_byte",
       .title = "bits per byte",
       .help = "cross-entropy of the final, merged model on the test text",
       .decimals = 4,
       .best = Lowest,
       .is_default = true,
       .of_run = of_summary(&Summary::bits_per_byte)},
      {.key = "r2",
       .title = "R²",
       .help = "of a regression: share of the variance of the test targets that the final, merged "
               "model explains",
       .decimals = 4,
       .best = Highest,
       .is_default = true,
       .of_run = of_summary(&Summary::r2)},
      {.key = "perplexity",
       .title = "perplexity",
       .help = "e to the mean cross-entropy per token on the test text",
       .decimals = -4,
       .best = Lowest,
       .of_run = of_summary(&Summary::perplexity)},
      {.key = "loss",
       .title = "loss",
       .help = "mean cross-entropy, or of a regression squared error, on the test set",
       .decimals = 4,
       .best = Lowest,
       .of_run = of_summary(&Summary::loss)},
      {.key = "compression_ratio",
       .title = "compression",
       .help = "parameters of the dense model / those of the final one",
       .decimals = 2,
       .best = Highest,
       .is_default = true,
       .of_run = of_summary(&Summary::compression_ratio)},
      {.key = "parameters",
       .title = "M parameters",
       .help = "parameters of the final model, both factors and all that stays "
               "dense, in millions",
       .unit = 1e6,
       .decimals = 3,
       .best = Lowest,
       .of_run = of_summary(&Summary::parameters)},
      {.key = "bytes",
       .title = "MB sent",
       .help = "bytes sent per worker in the whole run, without metrics",
       .unit = 1e6,
       .decimals = 1,
       .best = Lowest,
       .is_default = true,
       .of_run = of_summary(&Summary::bytes)},
      {.key = "vs_fp32",
       .title = "of fp32, %",
       .help = "bytes sent relative to fp32 data parallel training",
       .unit = 0.01,
       .decimals = 2,
       .best = Lowest,
       .is_default = true,
       .of_run = of_summary(&Summary::vs_fp32)}};
  if (target) {
    const std::string place = *target > 1 ? formatted(" to {} bits per byte", *target)
                                          : formatted(" to {} %", 100 * *target);
    const auto add = [&](Column column, double Evaluation::*what) {
      column.title += place;
      column.help += " up to the first evaluation that reaches the target";
      column.best = Lowest;
      column.is_median = true;
      column.of_run = [=](const RunRecord& run) { return at_arrival(run, target, what); };
      columns.push_back(std::move(column));
    };
    add({.key = "seconds_to_target",
         .title = "s",
         .help = "training time",
         .decimals = 1,
         .is_default = true,
         .is_time = true},
        &Evaluation::seconds);
    add({.key = "bytes_to_target",
         .title = "MB",
         .help = "bytes sent per worker",
         .unit = 1e6,
         .decimals = 1,
         .is_default = true},
        &Evaluation::bytes);
    add({.key = "steps_to_target", .title = "steps", .help = "steps"}, &Evaluation::step);
  }
  const std::vector<Column> rest = {
      {.key = "train_seconds",
       .title = "s trained",
       .help = "training time without evaluations and checkpoints",
       .decimals = 1,
       .best = Lowest,
       .is_time = true,
       .of_run = of_summary(&Summary::train_seconds)},
      {.key = "link_seconds",
       .title = "s over link",
       .help = "training time on the network that was asked for: computing "
               "as measured, bytes as metered",
       .decimals = 1,
       .best = Lowest,
       .is_default = true,
       .is_time = true,
       .of_run = of_summary(&Summary::link_seconds)},
      {.key = "ms_per_step",
       .title = "ms per step",
       .help = "training time divided by the number of steps",
       .decimals = 1,
       .best = Lowest,
       .is_default = true,
       .is_time = true,
       .of_run = of_summary(&Summary::ms_per_step)},
      {.key = "sent_bits",
       .title = "bits sent",
       .help = "bits sent per worker, step and parameter of the dense model",
       .decimals = 2,
       .best = Lowest,
       .of_run = of_summary(&Summary::sent_bits)},
      {.key = "communication_share",
       .title = "communicating, %",
       .help = "share of the training time in collectives",
       .unit = 0.01,
       .decimals = 1,
       .best = Lowest,
       .of_run = of_summary(&Summary::communication_share)},
      {.key = "waiting_share",
       .title = "waiting, %",
       .help = "share of the training time in which a worker waits for slower "
               "ones, mean over the workers",
       .unit = 0.01,
       .decimals = 1,
       .best = Lowest,
       .is_default = true,
       .of_run = of_summary(&Summary::waiting_share)},
      {.key = "waiting_max",
       .title = "most waiting, %",
       .help = "the same, of the worker that waits most",
       .unit = 0.01,
       .decimals = 1,
       .best = Lowest,
       .is_default = true,
       .of_run = of_summary(&Summary::waiting_max)},
      {.key = "core_share",
       .title = "had a core, %",
       .help = "share of its compute time in which a worker's thread had a core, on the CPU",
       .unit = 0.01,
       .decimals = 1,
       .of_run = of_summary(&Summary::core_share)},
      {.key = "coding_share",
       .title = "coding, %",
       .help = "share of the training time in encoding and decoding",
       .unit = 0.01,
       .decimals = 1,
       .best = Lowest,
       .of_run = of_summary(&Summary::coding_share)},
      {.key = "encode_ms",
       .title = "encoding, ms",
       .help = "encoding time per step",
       .decimals = 2,
       .best = Lowest,
       .is_time = true,
       .of_run = of_summary(&Summary::encode_ms)},
      {.key = "decode_ms",
       .title = "decoding, ms",
       .help = "decoding time per step",
       .decimals = 2,
       .best = Lowest,
       .is_time = true,
       .of_run = of_summary(&Summary::decode_ms)},
      {.key = "vnmse",
       .title = "vNMSE",
       .help = "squared error of the averaged gradient / squared norm of the "
               "true mean",
       .decimals = -3,
       .best = Lowest,
       .of_run = [](const RunRecord& run) { return run.summary ? run.vnmse : std::nullopt; }}};
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
}

std::vector<Column> choose_columns(const std::string& names, std::optional<double> target) {
  std::vector<Column> all = all_columns(target);
  if (names == "all") {
    return all;
  }
  if (names == "default") {
    std::erase_if(all, [](const Column& column) { return !column.is_default; });
    return all;
  }
  const auto keys = mapped(all_columns(target.value_or(1)), &Column::key);
  std::vector<Column> chosen;
  for (const std::string& part : split_text(names, ',')) {
    const std::string key(trim(part));
    ABT_CHECK(
        std::ranges::count(keys, key) > 0, Usage,
        "--columns: unknown column '{}'; expected all, default or a list of {}", key,
        join(keys, ", "));
    const auto column = std::ranges::find(all, key, &Column::key);
    ABT_CHECK(column != all.end(), Usage, "--columns: {} needs a --target", key);
    chosen.push_back(*column);
  }
  return chosen;
}

std::vector<Figure> figures(const Column& column, const std::vector<Setting>& settings) {
  auto all = mapped(settings, [&](const Setting& setting) { return column.figure(setting); });
  if (column.best == Best::Front) {
    const std::vector<bool> there = on_front(front_points(column, settings), by_data(settings));
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].is_best = there[i] && !(column.is_time && runs_beside_others(settings[i]));
    }
  } else if (column.best != Best::None) {
    for (const auto& members : by_data(settings)) {
      mark_best(column, members, settings, all);
    }
  }
  return all;
}

std::vector<Column> shown_columns(
    std::vector<Column> columns, const std::vector<Setting>& settings) {
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::none_of(
        settings, [&](const Setting& setting) { return column.figure(setting).value.has_value(); });
  });
  return columns;
}

std::string mark_text(const std::vector<Column>& columns, const std::vector<Setting>& settings) {
  const bool is_front = std::ranges::count(columns, Best::Front, &Column::best) > 0;
  const std::string mark = is_front ? "best score, or on the front: no other run is as good for "
                                      "as little"
                                    : "best of the column";
  return by_data(settings).size() > 1 ? mark + ", among runs of the same data" : mark;
}

std::string to_text(const Column& column, const Figure& figure) {
  if (!figure.value) {
    return "-";
  }
  std::string text = std::isinf(*figure.value) ? "not reached" : value_text(column, *figure.value);
  // A spread that would be shown as 0 is left out.
  if (figure.spread && value_text(column, *figure.spread) != value_text(column, 0)) {
    text += " ± " + value_text(column, *figure.spread);
  }
  return figure.note.empty() ? text : text + " (" + figure.note + ")";
}

std::string seeds_text(const Setting& setting) {
  const std::size_t all = setting.runs.size();
  const std::size_t some = setting.finished();
  return some == all ? formatted("{}", all) : formatted("{} of {}", some, all);
}

}  // namespace abtrain::report
