#include "sweep/fitted_rivals.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/mapped.h"
#include "base/named.h"
#include "base/scalars.h"
#include "base/text.h"
#include "config/check_run.h"
#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "linalg/rank_rule.h"
#include "plan/traffic.h"

namespace abtrain::sweep {

namespace {

using config::RunOptions;

// True for keys that make the rival what it is.
bool defines(const RivalSketch& sketch, const std::string& key) {
  const bool is_muon = key == "optimizer.matrices" && !sketch.name.starts_with("ab");
  return key.ends_with(".name") || is_muon || sketch.kind == RivalSketch::Kind::Reducer;
}

// Adds `warmup`, if it is given in steps or epochs, as a share of the configured run, so that runs
// of all lengths get a proportional warm-up.
void add_share(Sets& sets, const char* key, const Duration& warmup, const RunLength& length) {
  if (warmup.unit != Duration::Unit::Percent && warmup.value > 0) {
    const double percent = std::min(
        50.0,
        100.0 * static_cast<double>(warmup.in_steps(length)) / static_cast<double>(length.steps));
    sets.push_back(formatted("{}={:.3g} %", key, percent));
  }
}

// Returns the sketch's keys that the command line does not set, and notes in `why` each value that
// the command line replaces. Throws Error(Config) if the command line changes a key that makes the
// rival what it is; in a plan, such a key keeps the sketch's value.
Sets fitted(const RivalSketch& sketch, const Ground& ground, std::string& why) {
  Sets own;
  for (const Assignment& one : assignments_of(sketch.set(ground.base))) {
    const Assignment* given = ground.find_given(one.override.key);
    if (!given || (ground.request.plans && defines(sketch, one.override.key))) {
      own.push_back(set_of(one));
    } else if (given->text != one.text) {
      ABT_CHECK(
          !defines(sketch, one.override.key), Config, "needs {}, and the command line gives {}",
          set_of(one), set_of(*given));
      why += formatted("; as given, {} instead of {}", set_of(*given), one.text);
    }
  }
  return own;
}

// The keys of AB-training that its sketches take from the configuration.
Sets ab_keys(const std::string& name, const Ground& ground) {
  const methods::MethodOptions& method = ground.base.method;
  Sets keys;
  if (name == "ab" && !ground.request.plans) {
    add_share(keys, "method.warmup_steps", method.warmup_steps, ground.length);
    add_share(keys, "method.anneal_steps", method.anneal_steps, ground.length);
    keys = joined({keys, ground.size});
  }
  if (name == "ab_recipe") {
    // The sketch sets the rule `budget`. If the configured rule is neither `budget` nor `ratio`, it
    // has no ratio of its own, so the recipe takes the ratio that results from it.
    const bool has_ratio = method.rank.rule == linalg::RankRuleName::Budget ||
                           method.rank.rule == linalg::RankRuleName::Ratio;
    const std::string own = print_number(has_ratio ? method.rank.ratio : ground.ratio);
    keys.push_back(ground.size.empty() ? "method.rank.ratio=" + own : ground.size.back());
  }
  return keys;
}

// Bytes that a worker sends in a run of the configured length. Throws Error(Config) if the ranks,
// and so the bytes, depend on singular values.
double bytes_of(const RunOptions& o, const Ground& ground) {
  const auto planned = config::model_sizes(o, ground.set);
  ABT_CHECK(planned, Config, "only the spectra tell how many bytes AB-training sends");
  return plan::planned_bytes(o, planned->sizes, config::run_length(o, ground.images()));
}

void complete(RivalPlan& rival, const Sets& size, const RivalSketch& sketch, const Ground& ground);

// The rival before it gets a network. Throws Error(Config) if it makes no sense.
RivalPlan begun_of(const RivalSketch& sketch, const Ground& ground) {
  const std::string& name = sketch.name;
  ABT_CHECK(
      name != "ab" || ground.is_ab(), Config,
      "the configuration says nothing of AB-training; ab_recipe stands for "
      "it");
  const bool is_small = sketch.kind == RivalSketch::Kind::Small;
  ABT_CHECK(
      sketch.kind != RivalSketch::Kind::Tuning || ground.tunes(), Config,
      "needs a configuration of adapters (method.remainder: freeze)");
  ABT_CHECK(
      ground.no_ab.empty() || !(is_small || name == "ab" || name == "ab_recipe"), Config, "{}",
      ground.no_ab);
  ABT_CHECK(!is_small || ground.small.missing.empty(), Config, "{}", ground.small.missing);
  RivalPlan rival{.name = name, .why = sketch.why};
  rival.set = fitted(sketch, ground, rival.why);
  rival.set = joined({rival.set, ground.not_given(ab_keys(name, ground))});
  return rival;
}

// The override with which the rival sends as many bytes as AB-training, as closely as whole steps
// between synchronizations allow; none if the command line gives the interval.
std::optional<std::string> interval_of(const RunOptions& o, const Ground& ground) {
  const auto& all = rival_sketches();
  const RivalSketch& sketch = *std::ranges::find(all, ground.ab_name(), &RivalSketch::name);
  RivalPlan ab = begun_of(sketch, ground);
  complete(ab, {}, sketch, ground);
  const double wanted = bytes_of(ab.options, ground);
  const double steps = o.method.sync_every.value * bytes_of(o, ground) / wanted;
  ABT_CHECK(
      steps >= 0.5, Config, "sends less than AB-training ({}) even after every step",
      human_bytes(wanted));
  return ground.find_given("method.sync_every")
             ? std::nullopt
             : std::optional(formatted("method.sync_every={}", std::llround(steps)));
}

// Completes the rival's keys, for the network with the keys `size`.
void complete(RivalPlan& rival, const Sets& size, const RivalSketch& sketch, const Ground& ground) {
  const std::vector<std::string> sized = mapped(size, key_of);
  Sets model;  // keys of the command line for the large network
  for (const Assignment& one : ground.given) {
    const bool is_model = one.override.key.starts_with("model.");
    if (!ground.request.plans && is_model && std::ranges::count(sized, one.override.key) == 0) {
      model.push_back(set_of(one));
    }
  }
  std::erase_if(rival.set, [&](const std::string& own) {
    return std::ranges::count(sized, key_of(own)) > 0;
  });
  rival.set = joined({model, rival.set, size});
  if (sketch.sends_as_ab) {
    const RunOptions usual = ground.read(joined({ground.common, rival.set}));
    if (const auto interval = interval_of(usual, ground)) {
      std::erase_if(
          rival.set, [](const std::string& own) { return own.starts_with("method.sync_every="); });
      rival.set.push_back(*interval);
      rival.why += "; " + *interval;
    }
  }
  rival.options = ground.read(joined({ground.common, rival.set}));
  config::check_run(rival.options, ground.set, ground.set.train - rival.options.data.validation);
  rival.tune = moves_of(sketch, rival.options);
}

}  // namespace

Sets common_of(const Ground& ground, const Sets& sets) {
  if (ground.request.plans) {
    return sets;
  }
  Sets usual = {"evaluate.every=25 %", "checkpoint.every=0"};
  add_share(usual, "schedule.warmup_steps", ground.base.schedule.warmup_steps, ground.length);
  Sets common;
  for (const Assignment& one : ground.given) {
    if (!one.override.key.starts_with("model.")) {
      common.push_back(set_of(one));
    }
  }
  return joined({common, ground.not_given(usual)});
}

std::vector<RivalPlan> rivals_of(const RivalSketch& sketch, const Ground& ground) {
  const RivalPlan begun = begun_of(sketch, ground);
  std::vector<RivalPlan> all;
  const auto add = [&](const std::string& name, const std::string& what, const Sets& size) {
    RivalPlan& one = all.emplace_back(begun);
    one.name += all.size() == 1 ? "" : "_" + name;
    one.why += what.empty() ? "" : "; " + what;
    complete(one, size, sketch, ground);
  };
  if (sketch.kind == RivalSketch::Kind::Small) {
    for (const plan::SmallShape& shape : ground.small.shapes.shapes) {
      add(shape.name, formatted("{}: {}", shape.name, shape.what), shape.size.overrides);
      all.back().shape = shape.name;
    }
    return all;
  }
  add("", "", {});
  if (sketch.name == ground.ab_name()) {
    for (const AbSize& size : ground.ab_sizes) {
      add(size.name, size.what, size.overrides);
    }
  }
  return all;
}

}  // namespace abtrain::sweep
