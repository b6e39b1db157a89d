#include "sweep/rival_ground.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/scalars.h"
#include "base/text.h"
#include "config/planned_sizes.h"
#include "nn/families.h"
#include "nn/model.h"
#include "plan/same_size.h"
#include "sweep/assignments.h"

namespace abtrain::sweep {

namespace {

using config::RunOptions;

constexpr double kUsualRatio = 10;

}  // namespace

const Assignment* Ground::find_given(const std::string& key) const {
  const auto found = std::ranges::find(
      given, key, [](const Assignment& one) -> const std::string& { return one.override.key; });
  return found == given.end() ? nullptr : &*found;
}

Sets Ground::not_given(const Sets& sets) const {
  Sets left;
  std::ranges::copy_if(sets, std::back_inserter(left), [&](const std::string& one) {
    return find_given(key_of(one)) == nullptr;
  });
  return left;
}

void Ground::find_size() {
  const Assignment* rule = request.plans ? nullptr : find_given("method.rank.rule");
  ABT_CHECK(
      !rule || !request.ratio, Config,
      "method.rank.rule: expected either the rule or --size, got both");
  ABT_CHECK(
      !tunes() || (!request.ratio && config::model_sizes(base, set)), Config,
      "method.rank: adapters have the rank of the configuration; expected no --size, and a rule "
      "whose ranks are known before training, fixed or ratio");
  if (request.ratio || (!rule && (!is_ab() || !config::model_sizes(base, set)))) {
    size = {
        "method.rank.rule=budget",
        "method.rank.ratio=" + print_number(request.ratio.value_or(kUsualRatio))};
  }
  ab = read(joined({{"method.name=ab"}, size}));
  const auto planned = config::model_sizes(ab, set);
  ABT_CHECK(
      planned || !rule, Config,
      "method.rank.rule: expected a rule whose ranks are known before training, because the "
      "small networks get AB-training's size; got {}",
      rule->text);
  ABT_CHECK(
      planned && std::ranges::any_of(
                     planned->sizes.layers, [](const auto& layer) { return layer.rank > 0; }),
      Config,
      "model.name: expected a model with layers that AB-training can factor; "
      "{} has none{}",
      base.model.name, request.ratio ? " at this --size" : "");
  parameters = planned->stored;
  ratio = static_cast<double>(nn::make_model(base.model, set)->dense_parameters()) /
          static_cast<double>(parameters);
}

void Ground::find_ab_sizes() {
  const bool given_ranks = std::ranges::any_of(
      given, [](const Assignment& one) { return one.override.key.starts_with("method.rank."); });
  if (given_ranks || tunes() || ab.model.weights || !nn::can_scale(ab.model)) {
    return;
  }
  const auto dense_parameters = [&](const nn::ModelOptions& model) {
    return static_cast<double>(nn::make_model(model, set)->dense_parameters());
  };
  const auto stored = static_cast<double>(parameters);
  RunOptions own = ab;
  own.model.folded_head = !find_given("model.folded_head");
  const bool folds = dense_parameters(own.model) < dense_parameters(ab.model);
  own.model.folded_head = folds || ab.model.folded_head;
  const double whole = dense_parameters(own.model) / stored;
  const auto add = [&](const char* name, const char* what, double compression) {
    constexpr double kLeast = 1.25;  // with less, it is nearly the dense network
    if (compression < kLeast) {
      return;
    }
    Sets keys = {"method.rank.rule=budget", formatted("method.rank.ratio={:.4g}", compression)};
    if (folds) {
      keys.emplace_back("model.folded_head=true");
    }
    if (compression < whole) {
      const auto dense = static_cast<std::int64_t>(compression * stored);
      keys = joined({plan::same_size(own, dense).overrides, keys});
    }
    const auto found = config::model_sizes(read(joined({{"method.name=ab"}, keys})), set);
    constexpr double kMaxApart = 0.03;  // relative, in parameters
    if (std::abs(static_cast<double>(found->stored) / stored - 1) <= kMaxApart) {
      ab_sizes.push_back({name, formatted("{}: {}", what, join(keys, " ")), keys});
    }
  };
  try {
    if (folds) {
      add("folded", "with a head without taps that see copies", whole);
    }
    add("narrower", "in a narrower network, compressed less", std::sqrt(whole));
    add("nearly_dense", "in a still narrower one, compressed still less", std::pow(whole, 0.25));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Config) {  // Config means: no network is that narrow
      throw;
    }
  }
}

Choice assignments_of(const Sets& sets) {
  Choice all;
  std::vector<Problem> problems;
  AssignmentReader reader(problems);
  for (const std::string& set : sets) {
    const config::Override one = config::parse_override(set, "--set", problems);
    Choice own;
    reader.add(one.key, one.place, one.value, own);
    for (Assignment& assignment : own) {
      std::erase_if(all, [&](const Assignment& earlier) {
        return earlier.override.key == assignment.override.key;
      });
      all.push_back(std::move(assignment));
    }
  }
  return all;
}

std::string set_of(const Assignment& one) {
  return one.override.key + "=" + one.text;
}

std::string key_of(const std::string& set) {
  return set.substr(0, set.find('='));
}

}  // namespace abtrain::sweep
