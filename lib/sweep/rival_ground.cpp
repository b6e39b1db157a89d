#include "sweep/rival_ground.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/scalars.h"
#include "config/planned_sizes.h"
#include "nn/model.h"
#include "sweep/assignments.h"

namespace abtrain::sweep {

namespace {

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
