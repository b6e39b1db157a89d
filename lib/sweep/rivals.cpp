#include "sweep/rivals.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/mapped.h"
#include "base/named.h"
#include "base/scalars.h"
#include "base/text.h"
#include "config/check_run.h"
#include "config/config.h"
#include "config/run_length.h"
#include "plan/planned_data.h"
#include "report/tuning.h"
#include "sweep/fitted_rivals.h"
#include "sweep/resolve_points.h"
#include "sweep/rival_ground.h"
#include "sweep/rival_sketches.h"
#include "sweep/small_networks.h"

namespace abtrain::sweep {

namespace {

using config::RunOptions;

constexpr std::int64_t kMaxHeldOut = 5000;

// Returns the message of the Error(Config) that `body` throws, else "". Omits the place in the
// message: no user wrote the configuration that is read.
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

// True if the rival takes part by default. `tunes`: the configuration trains adapters.
bool is_usual(const RivalSketch& sketch, bool tunes, bool all) {
  using Kind = RivalSketch::Kind;
  if (tunes) {
    return sketch.kind == Kind::Tuning || sketch.name == "ab";
  }
  return sketch.kind == Kind::Usual || sketch.kind == Kind::Small ||
         (all && sketch.kind == Kind::Rare);
}

// `tunes`: the configuration trains adapters.
std::vector<const RivalSketch*> chosen(const RivalsRequest& request, bool tunes) {
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
    const bool is_tuning = sketch.kind == RivalSketch::Kind::Tuning;
    if ((request.plans && (tunes || !is_tuning)) || is_named ||
        (request.only.empty() && is_usual(sketch, tunes, request.all))) {
      out.push_back(&sketch);
    }
  }
  return out;
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
  const auto sketches = chosen(request, ground.tunes());
  const bool has_small = std::ranges::any_of(
      sketches, [](const RivalSketch* one) { return one->kind == RivalSketch::Kind::Small; });
  ABT_CHECK(
      has_small || !request.small, Usage,
      "--small: no rival of --only trains a small network; leave it out");
  const auto has_ab_size = [&](const RivalSketch* one) { return one->name == ground.ab_name(); };
  if (!request.plans && std::ranges::any_of(sketches, has_ab_size)) {
    ground.find_ab_sizes();
  }
  if (has_small && ground.no_ab.empty()) {
    ground.small = small_networks(read, ground.ab, ground.parameters, request);
  }

  ground.common = common_of(ground, sets);

  RivalList list;
  list.config = config;
  list.folders = folders;
  list.name = ground.base.name;
  list.parameters = ground.parameters;
  list.common = ground.common;
  list.settings = request.tune;
  const std::string held_out =
      formatted("data.validation={}", std::min(kMaxHeldOut, ground.set.train / 10));
  list.pilot = joined(
      {{"evaluate.every=0"},
       ground.base.data.validation > 0 ? ground.not_given({held_out}) : Sets{held_out}});

  std::map<std::string, std::string> known;  // names of rivals, by configuration
  for (const RivalSketch* sketch : sketches) {
    const std::string why = refusal_of([&] {
      for (RivalPlan& rival : rivals_of(*sketch, ground)) {
        const auto [twin, is_new] = known.emplace(content_of(rival.options), rival.name);
        ABT_CHECK(is_new, Config, "is the same as {} here", twin->second);
        if (!rival.shape.empty()) {
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
    if (!request.plans && !request.only.empty() && is_usual(sketch, ground.tunes(), false) &&
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
