#include "plan/same_size.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/rows.h"
#include "base/scalars.h"
#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "nn/families.h"
#include "nn/model.h"
#include "plan/finished_run.h"
#include "plan/planned_data.h"

namespace abtrain::plan {

namespace {

constexpr double kMaxAbove = 1.01;  // times the target
// Keeps the models that are tried within memory.
constexpr std::int64_t kMaxParameters = 1'000'000'000'000;

// The largest width with at most `target` parameters, and the smallest width with more.
std::pair<double, double> bounds_of(
    const ParametersAt& parameters, const std::string& name, std::int64_t target,
    const std::string& kept) {
  const std::int64_t smallest = parameters(0);
  ABT_CHECK(
      smallest <= target, Config,
      "model.name: even with one channel or feature per layer{}, {} has {} "
      "parameters; expected a target of at least that, got {}",
      kept, name, with_commas(smallest), with_commas(target));
  double below = 0;
  double above = nn::kWidest;
  const std::int64_t largest = parameters(above);
  ABT_CHECK(
      largest > target, Config,
      "model.name: at the largest width that is allowed, {} has {} "
      "parameters; expected a target below that, got {}",
      name, with_commas(largest), with_commas(target));
  for (;;) {
    const double middle = std::midpoint(below, above);
    if (middle <= below || middle >= above) {
      return {below, above};
    }
    (parameters(middle) <= target ? below : above) = middle;
  }
}

// Rounds a width to the fewest decimals that give the same number of parameters. Rounds up if
// exact.up is set, else down.
double rounded(const ParametersAt& parameters, const NearestWidth& exact) {
  constexpr double kFinest = 1e12;
  for (double scale = 1; scale <= kFinest; scale *= 10) {
    const double units = exact.width * scale;
    const double width = (exact.up ? std::ceil(units) : std::floor(units)) / scale;
    if (width > 0 && width <= nn::kWidest && parameters(width) == exact.parameters) {
      return width;
    }
  }
  return exact.width;
}

double relative_difference(const SameSize& found, const SizeTarget& target) {
  return static_cast<double>(found.parameters) / static_cast<double>(target.parameters) - 1;
}

}  // namespace

NearestWidth nearest_width(
    const ParametersAt& parameters, const std::string& name, std::int64_t target,
    const std::string& kept) {
  const auto [below, above] = bounds_of(parameters, name, target, kept);
  const std::int64_t fewer = parameters(below);
  const std::int64_t more = parameters(above);
  const bool up = more - target < target - fewer &&
                  static_cast<double>(more) <= kMaxAbove * static_cast<double>(target);
  return {up ? above : below, up, up ? more : fewer};
}

SizeTarget size_of_run(const std::string& folder) {
  return {
      read_summary(folder).integer("/parameters/stored", 1, kMaxParameters),
      folder + "/summary.json"};
}

SizeTarget planned_size(const config::RunOptions& options, const std::string& name) {
  const auto planned = config::model_sizes(options, planned_data(options.data).shape);
  ABT_CHECK(
      planned, Config,
      "method.rank.rule: the ranks of {} follow from the spectra of its "
      "weights; expected fixed, ratio or budget, or the folder of a "
      "finished run",
      name);
  return {planned->stored, (planned->estimated ? "the budget of " : "planned for ") + name};
}

SameSize same_size(const config::RunOptions& options, std::int64_t target) {
  ABT_CHECK(
      !options.model.weights, Config,
      "model.weights: expected none, because a network of another size cannot "
      "start from a file; got '{}'",
      *options.model.weights);
  ABT_CHECK(
      nn::can_scale(options.model), Config,
      "model.name: expected a model whose size follows from model.width; {} "
      "has no layer to widen",
      options.model.name);
  config::RunOptions resized = options;
  nn::ModelOptions& model = resized.model;
  const data::ExampleShape shape = planned_data(options.data).shape;
  // Allocates no weights: a model has none before it is initialized.
  const auto parameters = [&](double width) {
    model.width = width;
    return nn::make_model(model, shape)->dense_parameters();
  };
  const NearestWidth found = nearest_width(parameters, model.name, target);
  model.width = rounded(parameters, found);
  const std::string width = "model.width=" + print_number(model.width);
  return {std::move(resized), found.parameters, {width}};
}

std::string same_size_text(const SameSize& found, const SizeTarget& target) {
  const double percent = 100 * relative_difference(found, target);
  const std::string difference =
      percent == 0 ? "exactly as many"
                   : formatted("{:.2f} % {}", std::abs(percent), percent > 0 ? "more" : "fewer");
  return "\nsame size\n" +
         row("target",
             formatted("{} parameters, {}", with_commas(target.parameters), target.source)) +
         row("found", formatted("{} parameters, {}", with_commas(found.parameters), difference)) +
         row("options", "--set " + join(found.overrides, " --set "));
}

nlohmann::ordered_json same_size_json(const SameSize& found, const SizeTarget& target) {
  return {
      {"target", target.parameters},
      {"source", target.source},
      {"parameters", found.parameters},
      {"difference", relative_difference(found, target)},
      {"set", found.overrides}};
}

}  // namespace abtrain::plan
