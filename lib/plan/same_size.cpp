#include "plan/same_size.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"
#include "base/rows.h"
#include "base/scalars.h"
#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "methods/ab/decompose.h"
#include "nn/families.h"
#include "nn/model.h"
#include "plan/finished_run.h"
#include "plan/planned_data.h"

namespace abtrain::plan {

namespace {

constexpr double kMaxAbove = 1.01;  // times the target
// Keeps the models that are tried within memory.
constexpr std::int64_t kMaxParameters = 1'000'000'000'000;

// Parameters of the model at a width; at 0, with one channel or feature
// everywhere, or one for each head.
using Parameters = std::function<std::int64_t(double width)>;

// The last width with at most `target` parameters, and the first with more. `kept`: what does not
// shrink with the width, for messages.
std::pair<double, double> bounds_of(
    const Parameters& parameters, const std::string& name, std::int64_t target,
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

struct Nearest {
  double width = 0;
  bool up = false;  // it is the first with more than the target
};

// The width at which a model has as nearly `target` parameters as SameSize allows.
Nearest nearest(
    const Parameters& parameters, const std::string& name, std::int64_t target,
    const std::string& kept = "") {
  const auto [below, above] = bounds_of(parameters, name, target, kept);
  const std::int64_t fewer = parameters(below);
  const std::int64_t more = parameters(above);
  const bool up = more - target < target - fewer &&
                  static_cast<double>(more) <= kMaxAbove * static_cast<double>(target);
  return {up ? above : below, up};
}

// The width with the fewest decimals on this side of `exact` at which the model
// is as large.
double rounded(const Parameters& parameters, double exact, bool up) {
  constexpr double kFinest = 1e12;
  const std::int64_t wanted = parameters(exact);
  for (double scale = 1; scale <= kFinest; scale *= 10) {
    const double units = exact * scale;
    const double width = (up ? std::ceil(units) : std::floor(units)) / scale;
    if (width > 0 && width <= nn::kWidest && parameters(width) == wanted) {
      return width;
    }
  }
  return exact;
}

double relative_difference(const SameSize& found, const SizeTarget& target) {
  return static_cast<double>(found.parameters) / static_cast<double>(target.parameters) - 1;
}

constexpr const char* kNarrow = "every layer narrower by the same factor";
constexpr const char* kFolded =
    "the head without taps that see copies, then every layer narrower by the same factor";
constexpr const char* kMatched =
    "layers that AB-training keeps dense as wide as there, the others by what it stores";

std::vector<SmallShape::Layer> layers_of(const nn::Model& model) {
  return mapped(model.weights(), [&](const nn::NamedWeight& w) {
    std::int64_t numel = w.weight->numel();
    for (const nn::NamedParameter& p : model.parameters()) {
      numel += nn::layer_of(p.name) == w.layer ? p.tensor->numel() : 0;
    }
    return SmallShape::Layer{w.layer, w.weight->sizes(), numel};
  });
}

// What AB-training leaves of each free width, as a share: 1 if it keeps all layers of it dense.
// Empty if only the spectra can tell.
std::vector<double> shares_of(const config::RunOptions& ab, const data::ExampleShape& shape) {
  const auto planned = config::model_sizes(ab, shape);
  if (!planned) {
    return {};
  }
  const auto model = nn::make_model(ab.model, shape);
  const auto factored = methods::factorable_weights(*model, ab.method);
  return mapped(model->widths(), [&](const nn::FreeWidth& width) {
    double dense = 0;
    double stored = 0;
    for (const nn::NamedWeight& w : model->weights()) {
      if (std::ranges::none_of(
              width.layers, [&](const auto& glob) { return glob_match(glob, w.layer); })) {
        continue;
      }
      const auto place = std::ranges::find(factored, w.layer, &nn::NamedWeight::layer);
      const auto numel = static_cast<double>(w.weight->numel());
      dense += numel;
      stored += place == factored.end()
                    ? numel
                    : static_cast<double>(
                          planned->sizes.layers[static_cast<std::size_t>(place - factored.begin())]
                              .stored());
    }
    const double share = std::min(1.0, stored / dense);
    return width.is_inner ? share : std::sqrt(share);
  });
}

SmallShape matched_shape(
    config::RunOptions options, std::int64_t target, const config::RunOptions& ab,
    const data::ExampleShape& shape) {
  const std::vector<double> shares = shares_of(ab, shape);
  const auto widths = nn::make_model(ab.model, shape)->widths();
  ABT_CHECK(
      !widths.empty() && ab.model.name == options.model.name, Config,
      "model.name: the layers of {} have no widths of their own", options.model.name);
  ABT_CHECK(
      !shares.empty(), Config,
      "method.rank.rule: only the spectra tell what AB-training stores for each layer");
  const bool is_folded = options.model.folded_head;
  options.model = ab.model;
  options.model.folded_head = is_folded;
  std::vector<std::string> overrides;
  const auto parameters = [&](double factor) {
    std::vector<std::int64_t> counts;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const auto units =
          static_cast<double>(widths[i].count) / static_cast<double>(widths[i].divisor);
      const double wanted =
          std::min(shares[i] == 1 ? units : factor * shares[i] * units, nn::kMaxFeatures);
      counts.push_back(widths[i].divisor * std::max<std::int64_t>(1, std::llround(wanted)));
    }
    overrides = nn::set_widths(options.model, counts);
    return nn::make_model(options.model, shape)->dense_parameters();
  };
  const Nearest found = nearest(
      parameters, options.model.name, target,
      " that AB-training factors, and the others as they are");
  const std::int64_t numel = parameters(found.width);  // sets the widths
  if (is_folded) {
    overrides.emplace_back("model.folded_head=true");
  }
  return {"matched", kMatched, {std::move(options), numel, overrides}};
}

// Whether no layer of one differs from that of the other by more than 5 %, or by 1.
bool are_alike(const SmallShape& one, const SmallShape& other) {
  const auto is_near = [](std::int64_t a, std::int64_t b) {
    return 20 * std::abs(a - b) <= std::max<std::int64_t>(20, std::max(a, b));
  };
  return std::ranges::equal(one.layers, other.layers, [&](const auto& a, const auto& b) {
    return std::ranges::equal(a.sizes, b.sizes, is_near);
  });
}

// "3x3, 13 to 26, 3,068"
std::string cell_of(const SmallShape::Layer& layer) {
  const auto& sizes = layer.sizes;
  const bool is_conv = sizes.size() == 4;
  return formatted(
      "{}{} to {}, {}", is_conv ? formatted("{}x{}, ", sizes[2], sizes[3]) : "", sizes[1], sizes[0],
      with_commas(layer.parameters));
}

}  // namespace

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
      "weights; expected fixed, fraction, ratio or budget, or the folder of a "
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
  const Nearest found = nearest(parameters, model.name, target);
  const double width = rounded(parameters, found.width, found.up);
  const std::int64_t numel = parameters(width);  // sets it
  return {std::move(resized), numel, {"model.width=" + print_number(width)}};
}

SmallShape shape_of(
    std::string name, std::string what, const config::RunOptions& options,
    std::vector<std::string> overrides) {
  const auto model = nn::make_model(options.model, planned_data(options.data).shape);
  return {
      std::move(name),
      std::move(what),
      {options, model->dense_parameters(), std::move(overrides)},
      layers_of(*model)};
}

SmallShapes small_shapes(
    const config::RunOptions& options, std::int64_t target, const config::RunOptions* ab) {
  const data::ExampleShape shape = planned_data(options.data).shape;
  SmallShapes found;
  const auto add = [&](SmallShape one) {
    one.layers = layers_of(*nn::make_model(one.size.options.model, shape));
    const auto other = std::ranges::find_if(
        found.shapes, [&](const SmallShape& known) { return are_alike(one, known); });
    if (other == found.shapes.end()) {
      found.shapes.push_back(std::move(one));
    } else {
      found.left_out.emplace_back(
          one.name, formatted("all of its layers are within 5 % of those of {}", other->name));
    }
  };
  add({"narrow", kNarrow, same_size(options, target)});
  config::RunOptions folded = options;
  folded.model.folded_head = true;
  if (nn::make_model(folded.model, shape)->dense_parameters() ==
      nn::make_model(options.model, shape)->dense_parameters()) {
    folded.model.folded_head = options.model.folded_head;
    found.left_out.emplace_back("folded", "no tap of the head sees only copies");
  } else {
    SmallShape one{"folded", kFolded, same_size(folded, target)};
    one.size.overrides.emplace_back("model.folded_head=true");
    add(std::move(one));
  }
  if (ab == nullptr) {
    found.left_out.emplace_back("matched", "there is no AB-training of this network to match");
    return found;
  }
  try {
    add(matched_shape(folded, target, *ab, shape));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Config) {
      throw;
    }
    found.left_out.emplace_back("matched", error.what());
  }
  return found;
}

std::string shapes_text(const SmallShapes& found) {
  std::vector<std::vector<std::string>> columns = {{"layer"}};
  for (const auto& layer : found.shapes.front().layers) {
    columns.front().push_back(layer.name);
  }
  for (const SmallShape& shape : found.shapes) {
    columns.push_back({shape.name});
    std::ranges::transform(shape.layers, std::back_inserter(columns.back()), cell_of);
  }
  std::vector<std::string> lines(columns.front().size());
  for (const auto& column : columns) {
    const std::size_t widest = std::ranges::max(mapped(column, columns_of));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines[i] += "  " + (&column == &columns.back() ? column[i] : pad(column[i], widest));
    }
  }
  std::string out = "\nlayers (inputs to outputs, parameters)\n" + join(lines, "\n") + "\n";
  out += "\nshapes\n";
  for (const SmallShape& shape : found.shapes) {
    out += row(
        shape.name, formatted("{} parameters; {}", with_commas(shape.size.parameters), shape.what));
    out += row("", "--set " + join(shape.size.overrides, " --set "));
  }
  for (const auto& [name, why] : found.left_out) {
    out += row(name, "not here: " + why);
  }
  return out;
}

nlohmann::ordered_json shapes_json(const SmallShapes& found) {
  const auto layer_json = [](const SmallShape::Layer& layer) {
    return nlohmann::ordered_json{
        {"name", layer.name}, {"sizes", layer.sizes}, {"parameters", layer.parameters}};
  };
  return mapped(found.shapes, [&](const SmallShape& shape) {
    return nlohmann::ordered_json{
        {"name", shape.name},
        {"what", shape.what},
        {"parameters", shape.size.parameters},
        {"set", shape.size.overrides},
        {"layers", mapped(shape.layers, layer_json)}};
  });
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
