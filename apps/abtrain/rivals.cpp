// abtrain rivals: which method for this model, these data, this link and this
// time? Writes a sweep of all methods that are worth weighing, equally tuned
// and equally long, and on request trains it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "config/config.h"
#include "configuration.h"
#include "link_option.h"
#include "sweep/child_process.h"
#include "sweep/halving.h"
#include "sweep/rivals.h"
#include "training.h"

namespace abtrain::app {

namespace {

namespace fs = std::filesystem;

struct RivalsCommand {
  ConfigArgs config;
  std::optional<double> seconds;
  std::optional<std::int64_t> steps;
  std::optional<double> ratio;
  plan::Link link;
  std::int64_t seeds = 3;
  std::int64_t tune = 3;
  std::string only;
  bool all = false;
  bool run = false;
  std::string file;
  bool force = false;
};

constexpr double kLongestRun = 366 * 24 * 3600.0;  // seconds
constexpr std::int64_t kMostRivalSteps = 1'000'000'000;
constexpr std::int64_t kMostRivalSeeds = 1000;

// A folder for short runs that nobody needs afterwards.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name =
        (fs::temp_directory_path() / "abtrain-rivals-XXXXXX").string();
    ABT_CHECK(::mkdtemp(name.data()) != nullptr, Io, "cannot make '{}'", name);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const {
    return path_;
  }

 private:
  std::string path_;
};

// Measures how long runs of a rival take, by training it for a moment.
class Timer {
 public:
  Timer(std::string config, const sweep::RivalList& list)
      : config_(std::move(config)), list_(list) {}

  // Seconds of training that so many steps take; 0 if it diverged.
  double seconds(const sweep::RivalPlan& rival, std::int64_t steps) {
    const std::string name = formatted("{}_{}", rival.name, steps);
    std::vector<std::string> command{
        program_path(), "train", "--config", config_};
    const auto add = [&](const sweep::Keys& keys) {
      for (const auto& [key, value] : keys) {
        command.insert(command.end(), {"--set", key + "=" + value});
      }
    };
    add(list_.common);
    add(rival.set);
    add({{"train.steps", std::to_string(steps)}, {"evaluate.every", "0"}});
    command.insert(
        command.end(), {"--name", name, "--output", scratch_.path()});
    const std::string log = scratch_.path() + "/" + name + ".log";
    const auto child = sweep::ChildProcess::start(command, log, {});
    while (!child->ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (const int signal = StopSignals::requested(); signal != 0) {
        throw Error(
            ErrorKind::Stopped,
            formatted(
                "stopped by {} while measuring; nothing was written",
                signal_name(signal)));
      }
    }
    const int code = *child->ended();
    if (code == static_cast<int>(ErrorKind::Diverged)) {
      return 0;
    }
    ABT_CHECK(
        code == 0,
        Config,
        "{}: a run of {} steps ended with exit code {}:\n{}",
        rival.name,
        steps,
        code,
        trim(read_file(log, kMostText)));
    const std::string folder = scratch_.path() + "/" + name;
    return sweep::seconds_of(
        read_run_configuration(folder), folder, list_.link);
  }

 private:
  std::string config_;
  const sweep::RivalList& list_;
  ScratchFolder scratch_;
};

// Runs of up to so many steps are tried where shorter ones are refused.
constexpr std::int64_t kMostTries = 1024;

// Runs with fewer steps say nothing, and pilots take an eighth of them.
constexpr std::int64_t kFewestSteps = 16;

// The steps of a run that takes so long: a line through the last two of some
// short runs, each longer than the one before, since the start of a run takes
// time of its own. `first`: the steps of the first run. 0 if the rival diverged.
std::int64_t steps_for(
    Timer& timer,
    const sweep::RivalPlan& rival,
    std::int64_t first,
    double wanted) {
  constexpr double kShare = 0.15;  // of the whole, for the last short run
  constexpr double kLongEnough = 0.08;
  constexpr double kLongStart = 0.3;  // one run will do
  constexpr double kLeastGrowth = 2;
  constexpr double kMostGrowth = 12;
  std::int64_t steps = first;
  double seconds = timer.seconds(rival, steps);
  double each = seconds / static_cast<double>(steps);
  double start = 0;
  while (seconds > 0 &&
         seconds < (steps == first ? kLongStart : kLongEnough) * wanted) {
    const std::int64_t before = steps;
    const double took = seconds;
    steps = std::llround(
        static_cast<double>(steps) *
        std::clamp(kShare * wanted / seconds, kLeastGrowth, kMostGrowth));
    seconds = timer.seconds(rival, steps);
    each = (seconds - took) / static_cast<double>(steps - before);
    start = seconds - each * static_cast<double>(steps);
    if (!(each > 0) || start < 0) {
      each = seconds / static_cast<double>(steps);
      start = 0;
    }
  }
  return seconds <= 0
             ? 0
             : std::max<std::int64_t>(1, std::llround((wanted - start) / each));
}

std::string command_line(const RivalsCommand& args) {
  std::vector<std::string> words{"abtrain", "rivals", args.config.config};
  const auto add = [&](const std::string& word) { words.push_back(word); };
  std::ranges::for_each(args.config.sets, add);
  if (args.seconds) {
    add(formatted("--seconds {}", *args.seconds));
  }
  if (args.steps) {
    add(formatted("--steps {}", *args.steps));
  }
  if (args.ratio) {
    add(formatted("--size {}", *args.ratio));
  }
  if (args.link.nodes > 0) {
    add(formatted("--nodes {}", args.link.nodes));
  }
  if (!args.link.bandwidth.empty()) {
    add("--bandwidth " + args.link.bandwidth);
  }
  if (!args.link.latency.empty()) {
    add("--latency " + args.link.latency);
  }
  if (!args.only.empty()) {
    add("--only " + args.only);
  }
  if (args.all) {
    add("--all");
  }
  add(formatted("--tune {} --seeds {}", args.tune, args.seeds));
  return printable(join(words, " "));
}

constexpr std::string_view kMark = "# Made by: ";

std::string head_of(const RivalsCommand& args) {
  return formatted(
      "{}{}\n"
      "# A sweep of all methods that are worth weighing against each other: "
      "edit it, and\n# train it with `abtrain sweep FILE`.\n",
      kMark,
      command_line(args));
}

bool is_rivals_file(const std::string& begin) {
  return begin.starts_with(kMark);
}

void check(const RivalsCommand& args) {
  check_given(args.config);
  ABT_CHECK(
      args.seconds.has_value() != args.steps.has_value(),
      Usage,
      "rivals: expected --seconds N, the training time that each method gets, "
      "or --steps N; got {}",
      args.seconds ? "both" : "neither");
  ABT_CHECK(
      !args.seconds || (*args.seconds > 0 && *args.seconds <= kLongestRun),
      Usage,
      "--seconds: expected a time above 0 and of at most a year, got {}",
      *args.seconds);
  ABT_CHECK(
      !args.steps || (*args.steps >= 1 && *args.steps <= kMostRivalSteps),
      Usage,
      "--steps: expected 1 to {}, got {}",
      kMostRivalSteps,
      *args.steps);
  ABT_CHECK(
      !args.ratio || (*args.ratio > 1 && *args.ratio <= 1e6),
      Usage,
      "--size: expected how many times fewer parameters AB-training stores, "
      "above 1, such as 10; got {}",
      *args.ratio);
  ABT_CHECK(
      args.seeds >= 1 && args.seeds <= kMostRivalSeeds,
      Usage,
      "--seeds: expected 1 to {}, got {}",
      kMostRivalSeeds,
      args.seeds);
  ABT_CHECK(
      args.tune >= 1 &&
          args.tune <= static_cast<std::int64_t>(sweep::kMostSettings),
      Usage,
      "--tune: expected 1 to {} settings per rival, got {}",
      sweep::kMostSettings,
      args.tune);
  ABT_CHECK(
      !args.link.bandwidth.empty() ||
          (args.link.latency.empty() && args.link.nodes == 0),
      Usage,
      "--nodes and --latency describe a network: expected its --bandwidth too");
  std::error_code error;
  ABT_CHECK(
      !fs::is_directory(args.config.config, error),
      Usage,
      "rivals: expected a configuration, got the folder '{}'; the "
      "configuration of a run is {}/config.yaml",
      args.config.config,
      args.config.config);
}

// Sets the rival's steps. Returns why it cannot take part, or "".
std::string set_length(
    const RivalsCommand& args,
    Timer& timer,
    const sweep::RivalList& list,
    const std::vector<std::string>& folders,
    sweep::RivalPlan& rival) {
  const auto refused = [&](std::int64_t steps, bool is_pilot) {
    return sweep::refusal(list, rival, steps, is_pilot, folders);
  };
  rival.steps = args.steps.value_or(0);
  if (args.seconds) {
    std::int64_t first = 4;
    while (!refused(first, false).empty()) {
      first *= 2;
      if (first > kMostTries) {
        return refused(first, false);
      }
    }
    rival.steps = steps_for(timer, rival, first, *args.seconds);
    if (rival.steps == 0) {
      return "diverged in its first steps, as configured";
    }
    if (rival.steps < kFewestSteps) {
      return formatted(
          "only {} steps fit into {} s", rival.steps, *args.seconds);
    }
  }
  std::string why = refused(rival.steps, false);
  if (why.empty() && rival.tune.size() > 1) {
    const std::int64_t pilot =
        sweep::pilot_steps(rival.steps, rival.tune.size());
    if (const std::string of_pilot = refused(pilot, true); !of_pilot.empty()) {
      why = formatted("in pilots of {} steps, {}", pilot, of_pilot);
    }
  }
  return why;
}

void write_rivals(
    const RivalsCommand& args,
    const std::string& file,
    Log& log) {
  const auto folders = config::config_folders(program_path());
  sweep::RivalsRequest request;
  request.ratio = args.ratio;
  request.all = args.all;
  request.tune = static_cast<std::size_t>(args.tune);
  for (const std::string& name : split_text(args.only, ',')) {
    if (!trim(name).empty()) {
      request.only.emplace_back(trim(name));
    }
  }
  std::vector<std::string> places{""};
  places.insert(places.end(), folders.begin(), folders.end());
  const std::string path = config::find_config(args.config.config, places);
  sweep::RivalList list =
      sweep::list_rivals(path, args.config.sets, request, folders);
  list.name =
      !args.config.name.empty() ? args.config.name : list.name + "_rivals";
  list.output = args.config.output;
  list.config = fs::absolute(path).lexically_normal().string();
  for (const auto& [name, why] : list.left_out) {
    log.info("{} is left out: {}", name, why);
  }
  list.link = args.link;
  Timer timer(path, list);
  std::vector<sweep::RivalPlan> timed;
  for (std::size_t i = 0; i < list.rivals.size(); ++i) {
    sweep::RivalPlan rival = list.rivals[i];
    log.live(formatted(
        "measuring {} ({} of {})", rival.name, i + 1, list.rivals.size()));
    if (const std::string why = set_length(args, timer, list, folders, rival);
        !why.empty()) {
      list.left_out.emplace_back(rival.name, why);
      log.warning("{} is left out: {}", rival.name, why);
      continue;
    }
    log.info(
        "{}: {} steps; {}", rival.name, with_commas(rival.steps), rival.why);
    timed.push_back(std::move(rival));
  }
  log.live("");
  list.rivals = std::move(timed);
  list.seconds = args.seconds.value_or(0);
  ABT_CHECK(!list.rivals.empty(), Diverged, "no rival is left to train");
  atomic_write(file, sweep::rivals_yaml(list, args.seeds, head_of(args)));
}

int run_rivals(const RivalsCommand& args) {
  check(args);
  const std::string file =
      args.file.empty()
          ? fs::path(args.config.config).stem().string() + "_rivals.yaml"
          : args.file;
  std::error_code error;
  const bool is_there = fs::exists(file, error);
  if (is_there) {
    check_replaceable(
        file, {"-o", "a sweep of rivals", is_rivals_file}, args.force);
  }
  Log log;
  {
    const StopSignals signals;
    // An interrupted comparison goes on with the lengths that were measured.
    const bool goes_on = args.run && !args.force && is_there &&
                         read_file(file, kMostText).starts_with(head_of(args));
    if (goes_on) {
      log.info("{}: written by this command before; it is continued", file);
    } else {
      write_rivals(args, file, log);
    }
  }
  if (!args.run) {
    std::cout << "abtrain sweep " << printable(file) << "\n" << std::flush;
    return 0;
  }
  return train_sweep(file);
}

}  // namespace

Command add_rivals(CLI::App& parser) {
  auto args = std::make_shared<RivalsCommand>();
  CLI::App& command = *parser.add_subcommand(
      "rivals",
      "weigh all methods against each other on a configuration: equal time, "
      "equal tuning");
  add_config_options(command, args->config);
  command
      .add_option(
          "--seconds",
          args->seconds,
          "training time of each method on this machine; its number of steps "
          "follows from short runs")
      ->type_name("SECONDS");
  command.add_option(
      "--steps", args->steps, "instead of --seconds: steps of each method");
  command
      .add_option(
          "--size",
          args->ratio,
          "how many times fewer parameters AB-training stores, which the small "
          "dense networks match (default: as configured, else 10)")
      ->type_name("RATIO");
  add_link(command, args->link);
  command.add_option(
      "--seeds", args->seeds, "seeds of each run at full length (default 3)");
  command.add_option(
      "--tune",
      args->tune,
      "settings that each method may try, in short pilots (default 3; 1: as "
      "configured)");
  command
      .add_option(
          "--only",
          args->only,
          "only these: " + join(sweep::rival_names(), ", "))
      ->type_name("NAME,...");
  command.add_flag("--all", args->all, "DiLoCo and local SGD as well");
  command.add_flag(
      "--run",
      args->run,
      "train the sweep and report; the same command continues it");
  command
      .add_option(
          "-o,--file",
          args->file,
          "the sweep file to write (default: CONFIG_rivals.yaml here)")
      ->type_name("FILE");
  add_force(command, args->force);
  command.footer(
      "Examples:\n"
      "  abtrain rivals fashion_mnist_mlp --seconds 30 --run\n"
      "  abtrain rivals my.yaml --seconds 600 --size 8 -o rivals.yaml\n"
      "  abtrain sweep rivals.yaml --emit-slurm rivals.sh && bash rivals.sh\n");
  return {&command, [args] { return run_rivals(*args); }, true};
}

}  // namespace abtrain::app
