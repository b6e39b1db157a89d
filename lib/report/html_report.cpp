#include "report/html_report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/machine_text.h"
#include "base/mapped.h"
#include "base/text.h"
#include "report/formats.h"
#include "report/front.h"
#include "report/page_assets.h"
#include "report/traits.h"

namespace abtrain::report {

namespace {

using nlohmann::ordered_json;

// The most points of a run's curve: more could not be told apart in a plot.
constexpr std::size_t kMaxPoints = 500;

// Keeps at most kMaxPoints points, evenly spaced, both ends included.
template <class Point>
std::vector<Point> thinned(const std::vector<Point>& all) {
  const std::size_t points = std::min(all.size(), kMaxPoints);
  std::vector<Point> kept;
  for (std::size_t i = 0; i < points; ++i) {
    kept.push_back(points < 2 ? all.front() : all[i * (all.size() - 1) / (points - 1)]);
  }
  return kept;
}

// Five significant digits: enough for a plot, and short.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) {
    return 0;
  }
  return std::strtod(formatted("{:.4e}", value).c_str(), nullptr);
}

std::vector<double> rounded(const std::vector<double>& values) {
  return mapped(values, [](double value) { return rounded(value); });
}

// The score that the plots show.
WhichScore which_of(const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    for (const RunRecord& run : setting.runs) {
      if (!run.evaluations.empty()) {
        return run.evaluations.front().which();
      }
    }
  }
  return &Score::accuracy;
}

ordered_json curve(const std::vector<Evaluation>& evaluations, WhichScore which) {
  const std::vector<Evaluation> kept = thinned(evaluations);
  const auto score = [&](const Evaluation& e) {
    return e.*which ? ordered_json(rounded(*(e.*which))) : ordered_json(nullptr);
  };
  return {
      {"step", mapped(kept, &Evaluation::step)},
      {"seconds", rounded(mapped(kept, &Evaluation::seconds))},
      {"bytes", mapped(kept, &Evaluation::bytes)},
      {"score", mapped(kept, score)}};
}

const LayerCut* find(const Decomposition& cut, const std::string& name) {
  const auto layer = std::ranges::find(cut.layers, name, &LayerCut::name);
  return layer == cut.layers.end() ? nullptr : &*layer;
}

ordered_json ranks(const std::vector<Decomposition>& cuts) {
  const std::vector<Decomposition> kept = thinned(cuts);
  const auto over_time = [&](const LayerCut& layer) -> ordered_json {
    const auto rank = [&](const Decomposition& cut) {
      const LayerCut* there = find(cut, layer.name);
      return there == nullptr ? 0 : there->rank;
    };
    return {
        {"name", layer.name}, {"full", std::min(layer.m, layer.n)}, {"rank", mapped(kept, rank)}};
  };
  return {
      {"step", mapped(kept, &Decomposition::step)},
      {"layers", mapped(cuts.front().layers, over_time)}};
}

// The singular values of the first and the last decomposition; null if they were not logged.
ordered_json spectra(const std::vector<Decomposition>& cuts) {
  ordered_json layers = ordered_json::array();
  for (const LayerCut& first : cuts.front().layers) {
    const LayerCut* last = find(cuts.back(), first.name);
    if (!first.spectrum || last == nullptr || !last->spectrum) {
      continue;
    }
    const auto side = [](const LayerCut& cut) -> ordered_json {
      return {
          {"rank", cut.rank},
          {"index", cut.spectrum->index},
          {"value", rounded(cut.spectrum->value)}};
    };
    layers.push_back({{"name", first.name}, {"first", side(first)}, {"last", side(*last)}});
  }
  return layers.empty() ? ordered_json(nullptr)
                        : ordered_json{
                              {"first_step", cuts.front().step},
                              {"last_step", cuts.back().step},
                              {"layers", layers}};
}

ordered_json run_json(const RunRecord& run, std::size_t setting, WhichScore which) {
  ordered_json json = {
      {"name", printable(run.name)}, {"folder", printable(run.folder)},        {"seed", run.seed},
      {"setting", setting},          {"curve", curve(run.evaluations, which)}, {"ranks", nullptr},
      {"spectra", nullptr}};
  if (!run.decompositions.empty()) {
    json["ranks"] = ranks(run.decompositions);
    json["spectra"] = spectra(run.decompositions);
  }
  return json;
}

ordered_json column_json(const Column& column, const std::vector<Setting>& settings) {
  const auto cell = [&](const Figure& figure) -> ordered_json {
    // A target that was not reached has no value here, so it sorts last.
    const bool is_number = figure.value && std::isfinite(*figure.value);
    return {
        {"text", to_text(column, figure)},
        {"value", is_number ? ordered_json(*figure.value / column.unit) : ordered_json(nullptr)},
        {"best", figure.is_best}};
  };
  return {
      {"key", column.key},
      {"title", column.title},
      {"help", column.help},
      {"decimals", column.decimals},
      {"better", column.best == Best::Highest ? "higher" : "lower"},
      {"cells", mapped(figures(column, settings), cell)}};
}

// Mean, lowest and highest score of the finished runs; null if there are none.
ordered_json scores_json(const Setting& setting, WhichScore which) {
  const std::vector<double> values = setting.values(of_summary(which));
  if (values.empty()) {
    return nullptr;
  }
  const auto [low, high] = std::ranges::minmax(values);
  return {{"mean", rounded(mean(values))}, {"low", rounded(low)}, {"high", rounded(high)}};
}

// For each setting: its score, its costs, and whether it is on the front of all settings and on the
// front of its own FrontLine.
ordered_json front_json(const std::vector<Setting>& settings, WhichScore which) {
  const std::vector<FrontLine> lines = front_lines(settings);
  const auto line_json = [](const FrontLine& line) -> ordered_json {
    return {{"name", printable(line.name)}, {"settings", line.settings}};
  };
  ordered_json costs = ordered_json::array();
  for (const Column& column : shown_columns(choose_columns(kFrontCosts, {}), settings)) {
    const auto points = front_points(column, settings);
    const std::vector<bool> in_all = on_front(points, by_data(settings));
    const std::vector<bool> in_line = on_front(points, mapped(lines, &FrontLine::settings));
    ordered_json list = ordered_json::array();
    for (std::size_t i = 0; i < points.size(); ++i) {
      list.push_back(
          points[i]
              ? ordered_json{{"value", rounded(points[i]->cost)}, {"in_all", bool(in_all[i])}, {"in_line", bool(in_line[i])}}
              : ordered_json(nullptr));
    }
    costs.push_back({{"key", column.key}, {"points", list}});
  }
  return {
      {"scores", mapped(settings, [&](const Setting& s) { return scores_json(s, which); })},
      {"lines", mapped(lines, line_json)},
      {"costs", costs}};
}

ordered_json data_of(
    const Comparison& comparison, const std::vector<Column>& columns, const std::string& made) {
  const std::vector<Setting>& settings = comparison.settings;
  const WhichScore which = which_of(settings);
  const bool is_accuracy = which == &Score::accuracy;
  const char* const unit = which == &Score::r2 ? "R²" : "bits per byte";
  std::vector<std::string> verdict = comparison.verdict;
  if (!comparison.answer.empty()) {
    verdict.insert(verdict.begin(), comparison.answer);
  }
  ordered_json data = {
      {"made", made},
      {"target", comparison.target ? ordered_json(*comparison.target) : ordered_json(nullptr)},
      {"varying", comparison.varying},
      {"mark", mark_text(columns, settings)},
      {"score",
       {{"title", is_accuracy ? "accuracy, %" : unit},
        {"unit", is_accuracy ? 0.01 : 1},
        {"decimals", is_accuracy ? 2 : 4},
        {"suffix", formatted(" {}", is_accuracy ? "%" : unit)}}},
      {"front", front_json(settings, which)},
      {"settings", ordered_json::array()},
      {"columns", ordered_json::array()},
      {"runs", ordered_json::array()},
      {"unfinished", unfinished_runs(comparison)},
      {"skipped", comparison.skipped},
      {"verdict", verdict},
      {"cores", note_on_cores(settings)},
      {"tuning", nullptr},
      {"traits", ordered_json::array()}};
  if (const auto& tuning = comparison.tuning) {
    data["tuning"] = {{"rows", tuning_rows(*tuning)}, {"left_out", left_out_lines(*tuning)}};
  }
  const std::vector<Trait> traits = shown_traits(settings);
  for (const Trait& trait : traits) {
    data["traits"].push_back(
        {{"key", trait.key}, {"help", trait.help}, {"is_number", trait.is_number}});
  }
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const RunRecord& first = settings[i].runs.front();
    ordered_json keys = ordered_json::object();
    for (const std::string& key : comparison.varying) {
      keys[key] = first.value_of(key);
    }
    data["settings"].push_back(
        {{"name", printable(settings[i].name)},
         {"seeds", seeds_text(settings[i])},
         {"method", first.value_of("method.name")},
         {"rule", first.value_of("method.rank.rule")},
         {"config", keys},
         {"traits", ordered_json::array()}});
    for (const Trait& trait : traits) {
      const std::string words = trait.of(settings[i]);
      data["settings"].back()["traits"].push_back(words.empty() ? "-" : printable(words));
    }
    for (const RunRecord& run : settings[i].runs) {
      data["runs"].push_back(run_json(run, i, which));
    }
  }
  for (const Column& column : shown_columns(columns, settings)) {
    data["columns"].push_back(column_json(column, settings));
  }
  return data;
}

}  // namespace

std::string as_html(
    const Comparison& comparison, const std::vector<Column>& columns, const std::string& made) {
  // Escaping "<" makes the JSON safe inside <script>: it keeps out "</script>"
  // and HTML comments.
  const std::string data =
      replaced(json_text(data_of(comparison, columns, made), -1), "<", "\\u003c");
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"{{style}}", page_style()},
      {"{{plotly}}", plotly_script()},
      {"{{data}}", data},
      {"{{script}}", page_script()},
      {"{{plots}}", page_plots()}};
  std::string page;
  std::string_view rest = page_frame();
  for (const auto& [mark, part] : parts) {
    const std::size_t at = rest.find(mark);
    page.append(rest.substr(0, at)).append(part);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

}  // namespace abtrain::report
