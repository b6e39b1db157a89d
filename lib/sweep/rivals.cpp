#include "sweep/rivals.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/mapped.h"
#include "base/named.h"
#include "base/scalars.h"
#include "base/text.h"
#include "config/check_run.h"
#include "config/config.h"
#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "methods/method_kind.h"
#include "nn/families.h"
#include "nn/model.h"
#include "plan/planned_data.h"
#include "plan/traffic.h"
#include "report/tuning.h"
#include "sweep/assignments.h"
#include "sweep/resolve_points.h"
#include "sweep/rival_sketches.h"
#include "sweep/small_networks.h"

namespace abtrain::sweep {

namespace {

using config::RunOptions;

constexpr double kUsualRatio = 10;
constexpr std::int64_t kMaxHeldOut = 5000;

// Why `body` throws Error(Config): the problem's own words, without the place of
// a file that nobody wrote; "" where it does not.
std::string refusal_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Config) {
      throw;
    }
    constexpr std::string_view kMark = ": error: ";
    std::string line = error.what();
    line.resize(std::min(line.size(), line.find('\n')));
    const std::size_t at = line.find(kMark);
    return at == std::string::npos ? line : line.substr(at + kMark.size());
  }
  return "";
}

// Each key with its value: {rule: fixed, rank: 8} of method.rank has two. What is wrong with
// them is left to the reader of the configuration.
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

std::string text_of(const Assignment& one) {
  return one.override.key + "=" + one.text;
}

// Whether the rival would be another one with another value of this key.
bool defines(const RivalSketch& sketch, const std::string& key) {
  const bool is_muon = key == "optimizer.matrices" && !sketch.name.starts_with("ab");
  return key.ends_with(".name") || is_muon || sketch.kind == RivalSketch::Kind::Reducer;
}

// A warm-up in steps or epochs, as a share of the configured run: so runs of
// all lengths have it in proportion.
void add_share(Sets& sets, const char* key, const Duration& warmup, const RunLength& length) {
  if (warmup.unit != Duration::Unit::Percent && warmup.value > 0) {
    const double percent = std::min(
        50.0,
        100.0 * static_cast<double>(warmup.in_steps(length)) / static_cast<double>(length.steps));
    sets.push_back(formatted("{}={:.3g} %", key, percent));
  }
}

// Which of the rivals were asked for.
std::vector<const RivalSketch*> chosen(const RivalsRequest& request) {
  const std::vector<std::string> names = rival_names();
  for (const std::string& name : request.only) {
    const std::string meant = nearest(name, names);
    ABT_CHECK(
        std::ranges::count(names, name) > 0, Usage, "--only: expected one of {}; got '{}'{}",
        join(names, ", "), name, meant.empty() ? "" : formatted(", did you mean '{}'?", meant));
  }
  std::vector<const RivalSketch*> out;
  for (const RivalSketch& sketch : rival_sketches()) {
    const bool is_named = std::ranges::count(request.only, sketch.name) > 0;
    using Kind = RivalSketch::Kind;
    const bool is_usual = sketch.kind == Kind::Usual || sketch.kind == Kind::Small ||
                          (request.all && sketch.kind == Kind::Rare);
    if (request.plans || is_named || (request.only.empty() && is_usual)) {
      out.push_back(&sketch);
    }
  }
  return out;
}

// The inputs that all rivals of a configuration share.
struct Ground {
  const RivalsRequest& request;
  std::function<RunOptions(const Sets&)> read;  // the configuration with these overrides
  Choice given;  // what the command line sets, which holds for all rivals
  RunOptions base;
  data::DatasetShape set = {};
  RunLength length = {};

  // AB-training's size: as configured ({}), or by a budget.
  Sets size = {};
  double ratio = 0;             // what it comes to
  std::int64_t parameters = 0;  // that AB-training stores
  std::string no_ab = {};       // why the model cannot be factored, or ""
  RunOptions ab = {};           // the configuration with AB-training of that size

  SmallNetworks small = {};

  bool is_ab() const {
    return base.method.name == "ab";
  }
  std::int64_t images() const {
    return set.train - base.data.validation;
  }
  // The assignment of a key on the command line, or null.
  const Assignment* find_given(const std::string& key) const {
    const auto found = std::ranges::find(
        given, key, [](const Assignment& one) -> const std::string& { return one.override.key; });
    return found == given.end() ? nullptr : &*found;
  }

  // Throws Error(Config) where AB-training has nothing to factor.
  void find_size() {
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
};

// The "a.b" of "a.b=VALUE".
std::string key_of(const std::string& set) {
  return set.substr(0, set.find('='));
}

// Those of the sets whose keys the command line does not give.
Sets not_given(const Sets& sets, const Ground& ground) {
  Sets left;
  std::ranges::copy_if(sets, std::back_inserter(left), [&](const std::string& set) {
    return ground.find_given(key_of(set)) == nullptr;
  });
  return left;
}

// The keys of the sketch that the command line leaves to it. What it replaces is noted in `why`.
// Throws Error(Config) where it gives another value to a key that makes the rival what it is; in a
// plan, such a key stays as it is.
Sets fitted(const RivalSketch& sketch, const Ground& ground, std::string& why) {
  Sets own;
  for (const Assignment& one : assignments_of(sketch.set(ground.base))) {
    const Assignment* given = ground.find_given(one.override.key);
    if (!given || (ground.request.plans && defines(sketch, one.override.key))) {
      own.push_back(text_of(one));
    } else if (given->text != one.text) {
      ABT_CHECK(
          !defines(sketch, one.override.key), Config, "needs {}, and the command line gives {}",
          text_of(one), text_of(*given));
      why += formatted("; as given, {} instead of {}", text_of(*given), one.text);
    }
  }
  return own;
}

// The overrides of all rivals. Those of the model stand with each rival, since the small networks
// have others.
Sets common_of(const Ground& ground, const Sets& sets) {
  if (ground.request.plans) {
    return sets;
  }
  Sets usual = {"evaluate.every=25 %", "checkpoint.every=0"};
  add_share(usual, "schedule.warmup_steps", ground.base.schedule.warmup_steps, ground.length);
  Sets common;
  for (const Assignment& one : ground.given) {
    if (!one.override.key.starts_with("model.")) {
      common.push_back(text_of(one));
    }
  }
  return joined({common, not_given(usual, ground)});
}

// The keys of AB-training that its sketches leave to the configuration.
Sets ab_keys(const std::string& name, const Ground& ground) {
  const methods::MethodOptions& method = ground.base.method;
  Sets keys;
  if (name == "ab" && !ground.request.plans) {
    add_share(keys, "method.warmup_steps", method.warmup_steps, ground.length);
    add_share(keys, "method.anneal_steps", method.anneal_steps, ground.length);
    keys = joined({keys, ground.size});
  }
  if (name == "ab_recipe") {
    // Its rule is `budget` already. Another rule than that and `ratio` has no ratio of its own, so
    // the recipe takes the ratio that it comes to.
    const bool has_ratio = method.rank.rule == linalg::RankRuleName::Budget ||
                           method.rank.rule == linalg::RankRuleName::Ratio;
    const std::string own = print_number(has_ratio ? method.rank.ratio : ground.ratio);
    keys.push_back(ground.size.empty() ? "method.rank.ratio=" + own : ground.size.back());
  }
  return keys;
}

// Bytes that a worker sends in a run of the configured length. Throws Error(Config) if only the
// spectra can tell.
double bytes_of(const RunOptions& o, const Ground& ground) {
  const auto planned = config::model_sizes(o, ground.set);
  ABT_CHECK(planned, Config, "only the spectra tell how many bytes AB-training sends");
  return plan::planned_bytes(o, planned->sizes, config::run_length(o, ground.images()));
}

std::vector<RivalPlan> rivals_of(
    const RivalSketch& sketch, const Ground& ground, const Sets& common);

// The overrides with which the rival sends as many bytes as AB-training, as nearly as whole steps
// between synchronizations allow.
Sets interval_of(const RunOptions& o, const Ground& ground, const Sets& common) {
  const auto& all = rival_sketches();
  const char* name = ground.is_ab() ? "ab" : "ab_recipe";
  const RivalSketch& ab = *std::ranges::find(all, name, &RivalSketch::name);
  const double wanted = bytes_of(rivals_of(ab, ground, common).front().options, ground);
  const double steps = o.method.sync_every.value * bytes_of(o, ground) / wanted;
  ABT_CHECK(
      steps >= 0.5, Config, "sends less than AB-training ({}) even after every step",
      human_bytes(wanted));
  return not_given({formatted("method.sync_every={}", std::llround(steps))}, ground);
}

// Puts the rival's keys together, for the network with the keys `size`.
void complete(
    RivalPlan& rival, const Sets& size, const RivalSketch& sketch, const Ground& ground,
    const Sets& common) {
  const std::vector<std::string> sized = mapped(size, key_of);
  Sets model;  // given for the large network
  for (const Assignment& one : ground.given) {
    const bool is_model = one.override.key.starts_with("model.");
    if (!ground.request.plans && is_model && std::ranges::count(sized, one.override.key) == 0) {
      model.push_back(text_of(one));
    }
  }
  rival.set = joined({model, rival.set, size});
  if (sketch.sends_as_ab) {
    const Sets interval = interval_of(ground.read(joined({common, rival.set})), ground, common);
    for (const std::string& set : interval) {
      std::erase_if(
          rival.set, [&](const std::string& own) { return own.starts_with("method.sync_every="); });
      rival.set.push_back(set);
      rival.why += "; " + set;
    }
  }
  rival.options = ground.read(joined({common, rival.set}));
  config::check_run(rival.options, ground.set, ground.set.train - rival.options.data.validation);
  rival.tune = moves_of(sketch, rival.options);
}

// The rival, in each shape of its network if that has some. The first shape needs no mark in the
// name. Throws Error(Config) where the rival makes no sense for the configuration.
std::vector<RivalPlan> rivals_of(
    const RivalSketch& sketch, const Ground& ground, const Sets& common) {
  const std::string& name = sketch.name;
  ABT_CHECK(
      name != "ab" || ground.is_ab(), Config,
      "the configuration says nothing of AB-training; ab_recipe stands for "
      "it");
  const bool is_small = sketch.kind == RivalSketch::Kind::Small;
  ABT_CHECK(
      ground.no_ab.empty() || !(is_small || name == "ab" || name == "ab_recipe"), Config, "{}",
      ground.no_ab);
  ABT_CHECK(!is_small || ground.small.missing.empty(), Config, "{}", ground.small.missing);
  RivalPlan rival{.name = name, .why = sketch.why};
  rival.set = fitted(sketch, ground, rival.why);
  rival.set = joined({rival.set, not_given(ab_keys(name, ground), ground)});
  if (!is_small) {
    complete(rival, {}, sketch, ground, common);
    return {rival};
  }
  std::vector<RivalPlan> all;
  for (const plan::SmallShape& shape : ground.small.shapes.shapes) {
    RivalPlan& one = all.emplace_back(rival);
    one.name += all.size() == 1 ? "" : "_" + shape.name;
    one.why += formatted("; {}: {}", shape.name, shape.what);
    one.shapes = {{shape.name, shape.size.overrides}};
    complete(one, shape.size.overrides, sketch, ground, common);
    if (ground.request.plans) {
      break;
    }
  }
  return all;
}

}  // namespace

RivalList list_rivals(
    const std::string& config, const Sets& sets, const RivalsRequest& request,
    const std::vector<std::string>& folders) {
  const auto read = [&](const Sets& own) {
    return config::read_config(
        config, joined({sets, own}),
        {.folders = folders, .shortens_all = !request.plans, .shares_overrides = true});
  };
  Ground ground{request, read, assignments_of(sets), read({})};
  for (const char* key : {"train.steps", "train.epochs", "train.seconds"}) {
    ABT_CHECK(
        request.plans || ground.find_given(key) == nullptr, Usage,
        "{}: the runs are as long as --seconds or --steps says; leave it out", key);
  }
  ABT_CHECK(
      request.plans || ground.base.train.seconds == 0, Config,
      "train.seconds: expected 0 in the configuration, because --seconds or --steps says how long "
      "the runs are; got {}",
      print_number(ground.base.train.seconds));
  ground.set = plan::planned_data(ground.base.data).shape;
  ground.length = config::run_length(ground.base, ground.images());
  if (request.plans) {
    ground.no_ab = refusal_of([&] { ground.find_size(); });
  } else {
    ground.find_size();
  }
  if (ground.no_ab.empty()) {
    ground.small = small_networks(read, ground.ab, ground.parameters, request.small);
  }

  RivalList list;
  list.config = config;
  list.folders = folders;
  list.name = ground.base.name;
  list.parameters = ground.parameters;
  list.common = common_of(ground, sets);
  list.settings = request.tune;
  const std::string held_out =
      formatted("data.validation={}", std::min(kMaxHeldOut, ground.set.train / 10));
  list.pilot = joined(
      {{"evaluate.every=0"},
       ground.base.data.validation > 0 ? not_given({held_out}, ground) : Sets{held_out}});

  std::map<std::string, std::string> known;  // names by content
  for (const RivalSketch* sketch : chosen(request)) {
    const std::string why = refusal_of([&] {
      for (RivalPlan& rival : rivals_of(*sketch, ground, list.common)) {
        const auto [twin, is_new] = known.emplace(content_of(rival.options), rival.name);
        ABT_CHECK(is_new, Config, "is the same as {} here", twin->second);
        if (!rival.shapes.empty()) {
          list.shapes = ground.small.shapes;
        }
        list.rivals.push_back(std::move(rival));
      }
    });
    const bool lacks_all = !ground.small.missing.empty() && why == ground.small.missing;
    const std::string name = lacks_all ? "small_..." : sketch->name;
    if (!why.empty() &&
        !(lacks_all && std::ranges::count(list.left_out, name, &LeftOut::name) > 0)) {
      list.left_out.push_back({name, why});
    }
  }
  for (const RivalSketch& sketch : rival_sketches()) {
    const bool is_usual =
        sketch.kind == RivalSketch::Kind::Usual || sketch.kind == RivalSketch::Kind::Small;
    if (!request.plans && !request.only.empty() && is_usual &&
        std::ranges::count(request.only, sketch.name) == 0) {
      list.left_out.push_back({sketch.name, report::kNotAsked});
    }
  }
  if (request.plans) {
    const auto [twin, is_new] = known.emplace(content_of(ground.base), "configured");
    list.configured = twin->second;
    if (is_new) {
      list.rivals.push_back(
          {.name = list.configured, .why = "the configuration as it is", .options = ground.base});
    }
  }
  const auto reason = [](const LeftOut& one) { return "\n  " + one.name + ": " + one.why; };
  ABT_CHECK(
      !list.rivals.empty(), Config, "{}: no rival makes sense for this configuration:{}", config,
      join(mapped(list.left_out, reason), ""));
  return list;
}

std::string refusal(
    const RivalList& list, const RivalPlan& rival, std::int64_t steps, bool is_pilot) {
  const Sets sets = joined(
      {list.common,
       rival.set,
       is_pilot ? list.pilot : Sets{},
       {formatted("train.steps={}", steps)}});
  return refusal_of([&] {
    const RunOptions options =
        config::read_config(list.config, sets, {.folders = list.folders, .shares_overrides = true});
    const data::DatasetShape set = plan::planned_data(options.data).shape;
    config::check_run(options, set, set.train - options.data.validation);
  });
}

}  // namespace abtrain::sweep
