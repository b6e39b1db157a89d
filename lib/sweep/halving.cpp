#include "sweep/halving.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/machine_text.h"
#include "base/mapped.h"
#include "plan/finished_run.h"
#include "report/run_record.h"
#include "sweep/assignments.h"
#include "sweep/point_state.h"

namespace abtrain::sweep {

namespace {

using nlohmann::ordered_json;

// The keys of both; where both have one, that of `over`.
Choice merged(const Choice& base, const Choice& over) {
  Choice all;
  std::ranges::copy_if(base, std::back_inserter(all), [&](const auto& one) {
    return std::ranges::none_of(
        over, [&](const Assignment& other) { return other.override.key == one.override.key; });
  });
  all.insert(all.end(), over.begin(), over.end());
  return all;
}

bool is_at_full_length(const Halving& halving, std::size_t round) {
  return round + 1 == rounds_of(halving.settings());
}

// The setting of a rival in a round; `whole`: its steps at full length.
Choice choice_of(
    const Halving& halving, const Rival& rival, std::size_t setting, std::size_t round,
    std::int64_t whole) {
  Choice choice = merged(rival.set, rival.tune[setting]);
  if (!is_at_full_length(halving, round)) {
    choice = merged(choice, halving.pilot);
  }
  const std::string steps = std::to_string(steps_in(whole, halving.settings(), round));
  return merged(
      choice, {Assignment{config::literal_override("train.steps", steps, rival.place), steps}});
}

// The sweep of a round in which the rivals have these settings.
Sweep sweep_of(const Sweep& sweep, std::size_t round, const std::vector<Round::Tuned>& rivals) {
  const Halving& halving = *sweep.halving;
  Sweep plain = sweep;
  plain.halving.reset();
  const bool is_last = is_at_full_length(halving, round);
  // Pilots have the configuration's own seed. At full length all rivals train
  // with one seed before the next, so that a drift of the machine's speed
  // affects them alike.
  const std::vector<Choice> seeds =
      is_last && !sweep.seeds.empty() ? sweep.seeds : std::vector<Choice>{{}};
  plain.seeds.clear();
  if (!is_last) {
    plain.name = formatted("{}/pilots/{}", sweep.name, round + 1);
  }
  for (const Choice& seed : seeds) {
    for (std::size_t i = 0; i < halving.rivals.size(); ++i) {
      const Rival& rival = halving.rivals[i];
      for (const std::size_t setting : rivals[i].settings) {
        plain.list.push_back(
            merged(choice_of(halving, rival, setting, round, rivals[i].steps), seed));
        const std::string number = is_last ? seed.empty() ? "" : ",seed=" + seed.front().text
                                           : formatted(",setting={}", setting + 1);
        plain.labels.push_back(rival.name + number);
      }
    }
  }
  return plain;
}

std::string setting_text(const Choice& setting) {
  const auto part = [](const Assignment& one) { return one.override.key + ": " + one.text; };
  return setting.empty() ? "as configured" : join(mapped(setting, part), ", ");
}

// A pilot that has ended; -infinity where it diverged.
struct PilotResult {
  double quality = -std::numeric_limits<double>::infinity();
  double seconds = 0;  // of training, on the sweep's link
};

// Reads the run folder of a pilot. Throws Error(MissingInput) where it has not
// finished.
PilotResult pilot_result(const PointRun& run, const plan::Link& link) {
  const PointState state = own_state_of(run);
  PilotResult result;
  if (state == PointState::Failed && has_diverged(run)) {
    return result;
  }
  ABT_CHECK(
      state == PointState::Finished, MissingInput,
      "{}: expected a finished pilot, because its result decides which "
      "settings go on; it is {}",
      run.folder, name_of(state));
  result.seconds = seconds_of(run.options, run.folder, link);
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
    result.quality = report::score_of(event, validated ? "/validation_" : "/").quality();
    return result;
  }
  damaged(path, std::ssize(lines), "expected an evaluation of the final model");
}

}  // namespace

std::size_t settings_in(std::size_t settings, std::size_t round) {
  return ((settings - 1) >> round) + 1;
}

std::size_t rounds_of(std::size_t settings) {
  return static_cast<std::size_t>(1 + std::bit_width(settings - 1));
}

double length_of(std::size_t settings, std::size_t round) {
  return std::exp2(static_cast<double>(round + 1) - static_cast<double>(rounds_of(settings)));
}

Work work_of(std::size_t settings, std::size_t seeds) {
  Work work{seeds, static_cast<double>(seeds)};
  for (std::size_t round = 0; round + 1 < rounds_of(settings); ++round) {
    const std::size_t pilots = settings_in(settings, round);
    work.runs += pilots;
    work.lengths += static_cast<double>(pilots) * length_of(settings, round);
  }
  return work;
}

std::int64_t steps_in(std::int64_t whole, std::size_t settings, std::size_t round) {
  return std::max<std::int64_t>(
      1, std::llround(static_cast<double>(whole) * length_of(settings, round)));
}

std::size_t runs_in(const Sweep& sweep, std::size_t round) {
  const Halving& halving = *sweep.halving;
  const std::size_t each = is_at_full_length(halving, round)
                               ? std::max<std::size_t>(1, sweep.seeds.size())
                               : settings_in(halving.settings(), round);
  return each * halving.rivals.size();
}

double seconds_of(
    const config::RunOptions& options, const std::string& folder, const plan::Link& link) {
  return link.bandwidth.empty()
             ? plan::read_summary(folder).number("/seconds/train")
             : plan::seconds_over(options, folder, plan::network_of(link, options));
}

std::vector<std::size_t> better_half(
    const std::vector<std::size_t>& present, const std::vector<double>& qualities) {
  std::vector<std::size_t> order(present.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return qualities[i]; });
  order.resize((present.size() + 1) / 2);
  return mapped(order, [&](std::size_t i) { return present[i]; });
}

Round round_of(const Sweep& sweep, std::size_t round) {
  const Halving& halving = *sweep.halving;
  std::vector<std::size_t> all(halving.settings());
  std::iota(all.begin(), all.end(), 0);
  Round now;
  for (const Rival& rival : halving.rivals) {
    now.rivals.push_back({all, rival.steps});
  }
  for (std::size_t before = 0; before < round; ++before) {
    const Sweep pilots = sweep_of(sweep, before, now.rivals);
    const auto points = list_points(pilots);
    auto point = points.begin();
    for (Round::Tuned& rival : now.rivals) {
      std::vector<double> qualities;
      double fastest = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < rival.settings.size(); ++i) {
        const auto pilot = pilot_result(resolve(pilots, *point++), halving.link);
        qualities.push_back(pilot.quality);
        rival.pilot_seconds += pilot.seconds;
        if (pilot.seconds > 0) {
          fastest = std::min(fastest, pilot.seconds);
        }
        ++rival.pilots;
      }
      if (halving.seconds > 0 && std::isfinite(fastest)) {
        const std::int64_t steps = steps_in(rival.steps, halving.settings(), before);
        rival.steps = std::max<std::int64_t>(
            1, std::llround(halving.seconds / fastest * static_cast<double>(steps)));
      }
      rival.settings = better_half(rival.settings, qualities);
    }
  }
  now.sweep = sweep_of(sweep, round, now.rivals);
  now.is_last = is_at_full_length(halving, round);
  return now;
}

void write_tuning(const Sweep& sweep, const Round& last) {
  const Halving& halving = *sweep.halving;
  ordered_json rivals = ordered_json::array();
  for (std::size_t i = 0; i < halving.rivals.size(); ++i) {
    const Rival& rival = halving.rivals[i];
    const Round::Tuned& tuned = last.rivals[i];
    rivals.push_back(
        {{"name", rival.name},
         {"why", rival.why},
         {"tried", rival.tune.size()},
         {"pilots", tuned.pilots},
         {"pilot_seconds", tuned.pilot_seconds},
         {"chosen", setting_text(rival.tune[tuned.settings.front()])}});
  }
  const auto left_out = [](const auto& one) -> ordered_json {
    return {{"name", one.first}, {"why", one.second}};
  };
  const PointRun first = resolve(last.sweep, list_points(last.sweep).front());
  make_folders(first.options.output);
  atomic_write(
      first.options.output + "/tuning.json",
      json_text(ordered_json{
          {"settings", halving.settings()},
          {"seconds", halving.seconds},
          {"link",
           {{"bandwidth", halving.link.bandwidth},
            {"latency", halving.link.latency},
            {"nodes", halving.link.nodes}}},
          {"rivals", rivals},
          {"left_out", mapped(halving.left_out, left_out)}}));
}

}  // namespace abtrain::sweep
