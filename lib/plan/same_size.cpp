#include "plan/same_size.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/rows.h"
#include "base/scalars.h"
#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "nn/families.h"
#include "nn/model.h"
#include "plan/comparison.h"
#include "plan/planned_data.h"

namespace abtrain::plan {

namespace {

constexpr double kMaxAbove = 1.01;  // times the target
// Keeps the models that are tried within memory.
constexpr std::int64_t kMaxParameters = 1'000'000'000'000;

nn::InputShape input_of(const config::RunOptions& options) {
  return config::input_shape(planned_data(options.data).shape);
}

// A model of any width.
class SizedModel {
 public:
  SizedModel(const nn::ModelOptions& model, const nn::InputShape& shape)
      : model_(model), shape_(shape) {
    ABT_CHECK(
        nn::can_scale(model),
        Config,
        "model.name: expected a model whose size follows from model.width; {} "
        "has no layer to widen",
        model.name);
  }

  // At 0, one channel or feature everywhere, or one for each head.
  nn::ModelOptions at_width(double width) const {
    nn::ModelOptions sized = model_;
    sized.width = width;
    return sized;
  }
  // Allocates no weights: a model has none before it is initialized.
  std::int64_t parameters(double width) const {
    return nn::make_model(at_width(width), shape_)->dense_parameters();
  }

 private:
  nn::ModelOptions model_;
  nn::InputShape shape_;
};

// The last width with at most `target` parameters, and the first with more.
struct Bounds {
  double below = 0;
  double above = 0;
};

Bounds bounds_of(
    const SizedModel& model,
    const std::string& name,
    std::int64_t target) {
  const std::int64_t smallest = model.parameters(0);
  ABT_CHECK(
      smallest <= target,
      Config,
      "model.name: even with one channel or feature per layer, {} has {} "
      "parameters; expected a target of at least that, got {}",
      name,
      with_commas(smallest),
      with_commas(target));
  Bounds bounds{0, 1};
  while (model.parameters(bounds.above) <= target) {
    ABT_CHECK(
        bounds.above < nn::kWidest,
        Config,
        "model.name: at the largest model.width that is allowed, {} has {} "
        "parameters; expected a target below that, got {}",
        name,
        with_commas(model.parameters(bounds.above)),
        with_commas(target));
    bounds = {bounds.above, std::min(2 * bounds.above, nn::kWidest)};
  }
  for (;;) {
    const double middle = std::midpoint(bounds.below, bounds.above);
    if (middle <= bounds.below || middle >= bounds.above) {
      return bounds;
    }
    (model.parameters(middle) <= target ? bounds.below : bounds.above) = middle;
  }
}

// The width with the fewest decimals on this side of `exact` at which the model
// is as large.
double rounded(const SizedModel& model, double exact, bool up) {
  constexpr double kFinest = 1e12;
  const std::int64_t parameters = model.parameters(exact);
  for (double scale = 1; scale <= kFinest; scale *= 10) {
    const double units = exact * scale;
    const double width = (up ? std::ceil(units) : std::floor(units)) / scale;
    if (width > 0 && width <= nn::kWidest &&
        model.parameters(width) == parameters) {
      return width;
    }
  }
  return exact;
}

double relative_difference(const SameSize& found, const SizeTarget& target) {
  return static_cast<double>(found.parameters) /
             static_cast<double>(target.parameters) -
         1;
}

}  // namespace

SizeTarget size_of_run(const std::string& folder) {
  const JsonObject summary = read_summary(folder);
  return {
      summary.integer("/parameters/stored", 1, kMaxParameters),
      folder + "/summary.json"};
}

SizeTarget planned_size(
    const config::RunOptions& options,
    const std::string& name) {
  const auto planned = config::model_sizes(options, input_of(options));
  ABT_CHECK(
      planned,
      Config,
      "method.rank.rule: the ranks of {} follow from the spectra of its "
      "weights; expected fixed, fraction, ratio or budget, or the folder of a "
      "finished run",
      name);
  return {
      planned->stored,
      (planned->estimated ? "the budget of " : "planned for ") + name};
}

SameSize same_size(const config::RunOptions& options, std::int64_t target) {
  ABT_CHECK(
      !options.model.weights,
      Config,
      "model.weights: expected none, because a network of another size cannot "
      "start from a file; got '{}'",
      *options.model.weights);
  const SizedModel model(options.model, input_of(options));
  const Bounds bounds = bounds_of(model, options.model.name, target);
  const std::int64_t fewer = model.parameters(bounds.below);
  const std::int64_t more = model.parameters(bounds.above);
  const bool up =
      more - target < target - fewer &&
      static_cast<double>(more) <= kMaxAbove * static_cast<double>(target);
  const double width = rounded(model, up ? bounds.above : bounds.below, up);
  SameSize found{
      options, up ? more : fewer, {"model.width=" + print_number(width)}};
  found.options.model = model.at_width(width);
  return found;
}

std::string same_size_text(const SameSize& found, const SizeTarget& target) {
  const double percent = 100 * relative_difference(found, target);
  const std::string difference = percent == 0
                                     ? "exactly as many"
                                     : formatted(
                                           "{:.2f} % {}",
                                           std::abs(percent),
                                           percent > 0 ? "more" : "fewer");
  return "\nsame size\n" +
         row("target",
             formatted(
                 "{} parameters, {}",
                 with_commas(target.parameters),
                 target.source)) +
         row("found",
             formatted(
                 "{} parameters, {}",
                 with_commas(found.parameters),
                 difference)) +
         row("options", "--set " + join(found.overrides, " --set "));
}

nlohmann::ordered_json same_size_json(
    const SameSize& found,
    const SizeTarget& target) {
  return {
      {"target", target.parameters},
      {"source", target.source},
      {"parameters", found.parameters},
      {"difference", relative_difference(found, target)},
      {"set", found.overrides}};
}

}  // namespace abtrain::plan
