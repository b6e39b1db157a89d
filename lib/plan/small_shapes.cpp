#include "plan/small_shapes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/mapped.h"
#include "base/rows.h"
#include "config/planned_sizes.h"
#include "methods/ab/decompose.h"
#include "nn/families.h"
#include "nn/model.h"
#include "plan/planned_data.h"

namespace abtrain::plan {

namespace {

constexpr const char* kNarrow = "every layer narrower by the same factor";
constexpr const char* kFolded = "a head without taps that see copies, and more channels for it";
constexpr const char* kMatched = "each layer by what AB-training stores for it";

std::vector<SmallShape::Layer> layers_of(const nn::Model& model) {
  return mapped(model.weights(), [&](const nn::NamedWeight& w) {
    std::int64_t numel = w.weight->numel();
    for (const nn::NamedParameter& p : model.parameters()) {
      numel += nn::layer_of(p.name) == w.layer ? p.tensor->numel() : 0;
    }
    return SmallShape::Layer{w.layer, w.weight->sizes(), numel};
  });
}

SmallShape built(SmallShape shape, const data::ExampleShape& data) {
  shape.layers = layers_of(*nn::make_model(shape.size.options.model, data));
  return shape;
}

// For each free width (one that can be set by itself), the factor that makes dense layers store as
// much as AB-training does; 1 if it keeps them all dense. Empty if that depends on spectra.
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

// A free width. scale() multiplies all that are not fixed by one factor.
struct ScaledWidth {
  double count = 0;
  std::int64_t divisor = 1;
  bool is_fixed = false;
};

// Finds the common factor that meets `target`, sets the widths to the resulting counts, and marks
// them as fixed.
SameSize scale(
    config::RunOptions options, const data::ExampleShape& shape, std::int64_t target,
    std::vector<ScaledWidth>& widths) {
  SameSize found;
  found.options = std::move(options);
  std::vector<std::int64_t> counts;
  const auto resize = [&](double factor) {
    counts = mapped(widths, [&](const ScaledWidth& width) {
      const double wanted = (width.is_fixed ? 1 : factor) * width.count;
      const auto units =
          std::llround(std::min(wanted, nn::kMaxFeatures) / static_cast<double>(width.divisor));
      return width.divisor * std::max<std::int64_t>(1, units);
    });
    found.overrides = nn::set_widths(found.options.model, counts);
  };
  const auto parameters = [&](double factor) {
    resize(factor);
    return nn::make_model(found.options.model, shape)->dense_parameters();
  };
  const std::string& name = found.options.model.name;
  const NearestWidth best =
      nearest_width(parameters, name, target, ", the layers kept dense as they are");
  resize(best.width);
  found.parameters = best.parameters;
  if (found.options.model.folded_head) {
    found.overrides.emplace_back("model.folded_head=true");
  }
  for (std::size_t i = 0; i < widths.size(); ++i) {
    widths[i] = {static_cast<double>(counts[i]), widths[i].divisor, true};
  }
  return found;
}

// The index of the head's first free width; nullopt: model.folded_head drops no taps.
std::optional<std::size_t> folded_from(nn::ModelOptions options, const data::ExampleShape& shape) {
  const auto whole = nn::make_model(options, shape);
  options.folded_head = true;
  const auto folded = nn::make_model(options, shape);
  for (std::size_t i = 0; i < whole->weights().size(); ++i) {
    const nn::NamedWeight& w = whole->weights()[i];
    if (w.weight->numel() != folded->weights()[i].weight->numel()) {
      const auto& widths = whole->widths();
      return std::ranges::find(widths, std::vector{w.layer}, &nn::FreeWidth::layers) -
             widths.begin();
    }
  }
  return std::nullopt;
}

// Folds the head of a network after its widths were found: resets the widths before the head to
// `before` and scales them, so that these layers get the parameters of the dropped taps.
SameSize fold(
    config::RunOptions options, const data::ExampleShape& shape, std::int64_t target,
    const std::vector<ScaledWidth>& before, std::vector<ScaledWidth> widths, std::size_t head) {
  std::copy_n(before.begin(), head, widths.begin());
  options.model.folded_head = true;
  return scale(std::move(options), shape, target, widths);
}

SameSize matched(
    const config::RunOptions& options, const data::ExampleShape& shape, std::int64_t target,
    const config::RunOptions& ab, const std::optional<std::size_t>& head) {
  const auto free = nn::make_model(ab.model, shape)->widths();
  ABT_CHECK(
      !free.empty() && ab.model.name == options.model.name, Config,
      "model.name: the layers of {} have no widths of their own", options.model.name);
  const std::vector<double> shares = shares_of(ab, shape);
  ABT_CHECK(
      !shares.empty(), Config,
      "method.rank.rule: only the spectra tell what AB-training stores for each layer");
  std::vector<ScaledWidth> before;
  for (std::size_t i = 0; i < free.size(); ++i) {
    before.push_back(
        {shares[i] * static_cast<double>(free[i].count), free[i].divisor, shares[i] == 1});
  }
  config::RunOptions like = options;
  like.model = ab.model;
  std::vector<ScaledWidth> widths = before;
  SameSize found = scale(like, shape, target, widths);
  return head ? fold(std::move(like), shape, target, before, std::move(widths), *head) : found;
}

// Whether all layer sizes of the two shapes differ by at most 5 %, or by at most 1.
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

SmallShape narrow_shape(const config::RunOptions& options, std::int64_t target) {
  return built({"narrow", kNarrow, same_size(options, target)}, planned_data(options.data).shape);
}

SmallShapes small_shapes(
    const config::RunOptions& options, std::int64_t target, const config::RunOptions* ab) {
  const data::ExampleShape shape = planned_data(options.data).shape;
  SmallShapes found;
  const auto add = [&](SmallShape one) {
    one = built(std::move(one), shape);
    const auto other = std::ranges::find_if(
        found.shapes, [&](const SmallShape& known) { return are_alike(one, known); });
    if (other == found.shapes.end()) {
      found.shapes.push_back(std::move(one));
    } else {
      found.left_out.emplace_back(
          one.name, formatted("all of its layers are within 5 % of those of {}", other->name));
    }
  };
  found.shapes.push_back(narrow_shape(options, target));
  const auto head = folded_from(options.model, shape);
  if (head) {
    const auto widths_of = [&](const nn::ModelOptions& model, bool is_fixed) {
      return mapped(nn::make_model(model, shape)->widths(), [&](const nn::FreeWidth& width) {
        return ScaledWidth{static_cast<double>(width.count), width.divisor, is_fixed};
      });
    };
    add(
        {"folded", kFolded,
         fold(
             options, shape, target, widths_of(options.model, false),
             widths_of(found.shapes.front().size.options.model, true), *head)});
  } else {
    found.left_out.emplace_back("folded", "no tap of the head sees only copies");
  }
  if (ab == nullptr) {
    found.left_out.emplace_back("matched", "there is no AB-training of this network to match");
    return found;
  }
  try {
    add({"matched", kMatched, matched(options, shape, target, *ab, head)});
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
      lines[i] += &column == &columns.back() ? column[i] : pad(column[i], widest + 2);
    }
  }
  std::string out = "\nlayers (inputs to outputs, parameters)\n  " + join(lines, "\n  ") + "\n";
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

}  // namespace abtrain::plan
