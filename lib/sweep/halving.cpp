#include "sweep/halving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/machine_text.h"
#include "base/mapped.h"
#include "base/scalars.h"
#include "plan/finished_run.h"
#include "report/run_record.h"
#include "report/verdict.h"
#include "sweep/assignments.h"
#include "sweep/point_state.h"

namespace abtrain::sweep {

namespace {

using nlohmann::ordered_json;

// Number of settings that a rival tries in the first round, and in each later one.
constexpr std::int64_t kFirst = 3;
constexpr std::int64_t kNext = 2;

// Rounds of pilots that try new settings, without the round that makes up for repeated ones.
std::size_t exploring_rounds(const Halving& halving) {
  const std::int64_t later = std::max<std::int64_t>(0, halving.settings - kFirst);
  return halving.settings < 2 ? 0 : static_cast<std::size_t>(1 + (later + kNext - 1) / kNext);
}

std::size_t pilot_rounds(const Halving& halving) {
  return halving.settings < 2 ? 0 : exploring_rounds(halving) + 2;
}

bool decides(const Halving& halving, std::size_t round) {
  return round + 1 == pilot_rounds(halving);
}

bool is_pilot(const Halving& halving, std::size_t round) {
  return round < pilot_rounds(halving);
}

// Number of settings that a rival has tried after an exploring round.
std::size_t target_of(const Halving& halving, std::size_t round) {
  return static_cast<std::size_t>(
      std::min(halving.settings, kFirst + kNext * static_cast<std::int64_t>(round)));
}

std::size_t seeds_in(const Sweep& sweep) {
  return std::max<std::size_t>(1, sweep.seeds.size());
}

// Number of additional seeds for the two best rivals.
std::size_t more_seeds(const Sweep& sweep) {
  const auto wanted = static_cast<std::size_t>(sweep.halving->finalist_seeds);
  return sweep.halving->rivals.size() < 2 ? 0 : wanted - std::min(wanted, seeds_in(sweep));
}

// Returns a round without runs yet. `name`: its folder.
Sweep plain(const Sweep& sweep, const std::string& name) {
  Sweep out = sweep;
  out.halving.reset();
  out.seeds.clear();
  out.name = name;
  return out;
}

void add_run(
    Sweep& sweep, const Search& search, const Rival& rival, const Search::Run& run, double length,
    const Choice& last, const std::string& number) {
  const std::string steps = std::to_string(steps_in(run.steps, length));
  sweep.list.push_back(merged(
      merged(merged(rival.set, search.setting(run.setting)), last),
      {Assignment{config::literal_override("train.steps", steps, rival.place), steps}}));
  sweep.labels.push_back(rival.name + number);
}

Choice seed_choice(std::uint64_t seed, const Location& place) {
  const std::string text = std::to_string(seed);
  return {Assignment{config::literal_override("seed", text, place), text}};
}

// `runs`: the pilots of each rival.
Sweep pilot_sweep(
    const Sweep& sweep, std::size_t round, const std::vector<Search>& searches,
    const std::vector<std::vector<Search::Run>>& runs) {
  const Halving& halving = *sweep.halving;
  Sweep out = plain(sweep, formatted("{}/pilots/{}", sweep.name, round + 1));
  for (std::size_t i = 0; i < halving.rivals.size(); ++i) {
    const Rival& rival = halving.rivals[i];
    for (const Search::Run& run : runs[i]) {
      Choice last = halving.pilot;
      std::string number = formatted(",setting={}", run.setting + 1);
      if (run.repeat > 0) {
        const std::uint64_t seed = resolve(sweep, {0, "", rival.set}).options.seed +
                                   static_cast<std::uint64_t>(run.repeat);
        last = merged(last, seed_choice(seed, rival.place));
        number += formatted(",seed={}", seed);
      }
      add_run(out, searches[i], rival, run, length_of(halving, round), last, number);
    }
  }
  return out;
}

// Returns train.seconds for a run that goes by the clock, but nothing for seconds on a link.
Choice by_clock(const Halving& halving, const Location& place) {
  if (halving.seconds == 0 || !halving.link.bandwidth.empty()) {
    return {};
  }
  const std::string seconds = print_number(halving.seconds);
  return {Assignment{config::literal_override("train.seconds", seconds, place), seconds}};
}

// All rivals train with one seed before any takes the next, so that a drift of the machine's speed
// affects them alike.
Sweep full_sweep(const Sweep& sweep, const std::vector<Search>& searches) {
  Sweep out = plain(sweep, sweep.name);
  for (const Choice& seed : sweep.seeds.empty() ? std::vector<Choice>{{}} : sweep.seeds) {
    for (std::size_t i = 0; i < searches.size(); ++i) {
      const Rival& rival = sweep.halving->rivals[i];
      add_run(
          out, searches[i], rival, searches[i].chosen(), 1,
          merged(seed, by_clock(*sweep.halving, rival.place)),
          seed.empty() ? "" : ",seed=" + seed.front().text);
    }
  }
  return out;
}

std::string setting_text(const Choice& setting) {
  const auto part = [](const Assignment& one) { return one.override.key + ": " + one.text; };
  return setting.empty() ? "as configured" : join(mapped(setting, part), ", ");
}

// Returns true if the run has finished and false if it has diverged. Throws Error(MissingInput) if
// neither.
bool has_result(const PointRun& run) {
  const PointState state = own_state_of(run);
  if (state == PointState::Failed && has_diverged(run)) {
    return false;
  }
  ABT_CHECK(
      state == PointState::Finished, MissingInput,
      "{}: expected a finished run, because its result decides which "
      "settings go on; it is {}",
      run.folder, name_of(state));
  return true;
}

// Reads a pilot's run folder. `steps`: of a full-length run; `length`: the pilot's share of it.
PilotResult pilot_result(
    const PointRun& run, const plan::Link& link, std::int64_t steps, double length) {
  PilotResult result;
  if (!has_result(run)) {
    return result;
  }
  result.seconds = seconds_of(run.options, run.folder, link);
  if (result.seconds > 0) {
    result.steps_per_second = static_cast<double>(steps_in(steps, length)) / result.seconds;
  }
  // The last event with a score is that of the final model.
  const std::string path = run.folder + "/metrics.jsonl";
  const auto lines = split_text(read_file(path, kMaxLines), '\n');
  for (auto i = std::ssize(lines) - 1; i >= 0; --i) {
    const std::string& line = lines[static_cast<std::size_t>(i)];
    if (line.find("\"event\":\"evaluate\"") == std::string::npos) {
      continue;
    }
    const JsonObject event(path, i + 1, line);
    const bool validated = event.maybe("/validation_loss").has_value();
    const std::string begin = validated ? "/validation_" : "/";
    result.quality = report::score_of(event, begin).quality();
    result.loss = event.maybe((begin + "loss").c_str()).value_or(0);
    return result;
  }
  damaged(path, std::ssize(lines), "expected an evaluation of the final model");
}

// Adds runs with further seeds for the two best rivals, before the full-length runs in `now`, which
// must have ended. Passes over rivals that diverged or took too long.
void add_more_seeds(const Sweep& sweep, Round& now) {
  const Halving& halving = *sweep.halving;
  const auto points = list_points(now.sweep);
  const std::size_t count = halving.rivals.size();
  std::vector<double> qualities(count);
  std::vector<double> seconds(count);
  std::uint64_t seed = 0;  // the highest so far, which is the configuration's own if none is listed
  for (std::size_t i = 0; i < points.size(); ++i) {
    const PointRun run = resolve(now.sweep, points[i]);
    seed = std::max(seed, run.options.seed);
    const auto share = 1 / static_cast<double>(points.size() / count);
    if (has_result(run)) {
      qualities[i % count] +=
          share * report::score_of(JsonObject::of_file(run.folder + "/summary.json")).quality();
      seconds[i % count] += share * seconds_of(run.options, run.folder, halving.link);
    } else {
      qualities[i % count] = -std::numeric_limits<double>::infinity();
    }
  }
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_late = halving.seconds > 0 && seconds[i] > report::kInTime * halving.seconds;
    if (std::isfinite(qualities[i]) && !is_late) {
      best.push_back(i);
    }
  }
  std::ranges::stable_sort(best, std::greater(), [&](std::size_t i) { return qualities[i]; });
  best.resize(best.size() < 2 ? 0 : 2);
  Sweep more = plain(sweep, sweep.name);
  for (std::size_t k = 0; k < more_seeds(sweep); ++k) {
    ++seed;
    for (const std::size_t i : best) {
      const Rival& rival = halving.rivals[i];
      add_run(
          more, now.rivals[i], rival, now.rivals[i].chosen(), 1,
          merged(seed_choice(seed, rival.place), by_clock(halving, rival.place)),
          formatted(",seed={}", seed));
    }
  }
  now.runs = more.list.size();
  more.list.insert(more.list.end(), now.sweep.list.begin(), now.sweep.list.end());
  more.labels.insert(more.labels.end(), now.sweep.labels.begin(), now.sweep.labels.end());
  now.sweep = std::move(more);
}

}  // namespace

std::size_t rounds_of(const Sweep& sweep) {
  return pilot_rounds(*sweep.halving) + (more_seeds(sweep) > 0 ? 2 : 1);
}

double length_of(const Halving& halving, std::size_t round) {
  return !is_pilot(halving, round) ? 1 : decides(halving, round) ? 0.5 : kPilotLength;
}

std::int64_t steps_in(std::int64_t whole, double length) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(whole) * length));
}

std::size_t runs_in(const Sweep& sweep, std::size_t round) {
  const Halving& halving = *sweep.halving;
  if (round > pilot_rounds(halving)) {
    return 2 * more_seeds(sweep);
  }
  const std::size_t each = !is_pilot(halving, round) ? seeds_in(sweep)
                           : decides(halving, round) ? 4
                           : round == 0              ? target_of(halving, 0)
                                                     : Search::kAtOnce;
  return each * halving.rivals.size();
}

std::size_t expected_runs(const Sweep& sweep, std::size_t round) {
  const Halving& halving = *sweep.halving;
  const bool is_exploring = is_pilot(halving, round) && !decides(halving, round);
  return is_exploring && round > 0
             ? halving.rivals.size() * (target_of(halving, round) - target_of(halving, round - 1))
             : runs_in(sweep, round);
}

Work work_of(std::size_t settings, std::size_t seeds) {
  const auto tried = static_cast<double>(settings);
  return settings < 2 ? Work{seeds, static_cast<double>(seeds)}
                      : Work{
                            settings + 4 + seeds,
                            kPilotLength * tried + 0.5 * 4 + static_cast<double>(seeds)};
}

double seconds_of(
    const config::RunOptions& options, const std::string& folder, const plan::Link& link) {
  return link.bandwidth.empty()
             ? plan::read_summary(folder).number("/seconds/train")
             : plan::seconds_over(options, folder, plan::network_of(link, options));
}

Round round_of(const Sweep& sweep, std::size_t round) {
  const Halving& halving = *sweep.halving;
  Round now;
  for (const Rival& rival : halving.rivals) {
    now.rivals.emplace_back(sweep, rival);
    if (halving.settings < 2) {
      now.rivals.back().explore(1, 1);  // the rival as configured
    }
  }
  now.is_full = round == pilot_rounds(halving);
  now.is_last = round + 1 == rounds_of(sweep);
  for (std::size_t before = 0; is_pilot(halving, before); ++before) {
    const double length = length_of(halving, before);
    std::vector<std::vector<Search::Run>> runs;
    for (Search& search : now.rivals) {
      const std::size_t target = before < exploring_rounds(halving)
                                     ? target_of(halving, before)
                                     : static_cast<std::size_t>(halving.settings);
      runs.push_back(decides(halving, before) ? search.decide() : search.explore(target, length));
    }
    const Sweep pilots = pilot_sweep(sweep, before, now.rivals, runs);
    if (before == round) {
      now.sweep = pilots;
      now.runs = pilots.list.size();
      return now;
    }
    if (pilots.list.empty()) {
      continue;
    }
    const auto points = list_points(pilots);
    auto point = points.begin();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      now.rivals[i].learn(runs[i], mapped(runs[i], [&](const Search::Run& run) {
                            return pilot_result(
                                resolve(pilots, *point++), halving.link, run.steps, length);
                          }));
    }
  }
  now.sweep = full_sweep(sweep, now.rivals);
  now.runs = now.sweep.list.size();
  if (!now.is_full) {
    add_more_seeds(sweep, now);
  }
  return now;
}

void write_tuning(const Sweep& sweep, const Round& full) {
  const Halving& halving = *sweep.halving;
  ordered_json rivals = ordered_json::array();
  for (std::size_t i = 0; i < halving.rivals.size(); ++i) {
    const Rival& rival = halving.rivals[i];
    const Search& search = full.rivals[i];
    rivals.push_back(
        {{"name", rival.name},
         {"why", rival.why},
         {"tried", std::max<std::size_t>(1, search.tried())},
         {"pilots", search.pilots()},
         {"pilot_seconds", search.pilot_seconds()},
         {"chosen", setting_text(search.setting(search.chosen().setting))}});
  }
  const auto left_out = [](const LeftOut& one) -> ordered_json {
    return {{"name", one.name}, {"why", one.why}, {"kind", name_of(one.kind)}};
  };
  const PointRun first = resolve(full.sweep, list_points(full.sweep).front());
  make_folders(first.options.output);
  atomic_write(
      first.options.output + "/tuning.json",
      json_text(ordered_json{
          {"settings", halving.settings},
          {"seconds", halving.seconds},
          {"link",
           {{"bandwidth", halving.link.bandwidth},
            {"latency", halving.link.latency},
            {"nodes", halving.link.nodes}}},
          {"rivals", rivals},
          {"left_out", mapped(halving.left_out, left_out)}}));
}

}  // namespace abtrain::sweep
