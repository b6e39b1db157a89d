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
#include "sweep/child_process.h"
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

// Runs up to this length are tried where shorter ones are refused.
constexpr std::int64_t kMostTries = 256;

// Measures how long runs of a rival take, by training it for a moment.
class Timer {
 public:
  Timer(std::string config, const sweep::RivalList& list)
      : config_(std::move(config)), list_(list) {}

  // Seconds of training that so many steps take; 0 if they are too few for the
  // rival's intervals, negative if it diverged.
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
      return -1;
    }
    if (code == static_cast<int>(ErrorKind::Config) && steps < kMostTries) {
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
    return JsonObject::of_file(scratch_.path() + "/" + name + "/summary.json")
        .number("/seconds/train");
  }

 private:
  std::string config_;
  const sweep::RivalList& list_;
  ScratchFolder scratch_;
};

// Runs with fewer steps say nothing, and pilots take an eighth of them.
constexpr std::int64_t kFewestSteps = 16;

// The steps of a run that takes so long: a line through the last two of some
// short runs, each longer than the one before, since the first steps of a run
// are slower. 0 if the rival diverged.
std::int64_t
steps_for(Timer& timer, const sweep::RivalPlan& rival, double wanted) {
  constexpr double kShare = 0.12;  // of the whole, for the last short run
  constexpr double kLongEnough = 0.06;
  constexpr double kLeastGrowth = 2;
  constexpr double kMostGrowth = 12;
  std::int64_t steps = 4;
  double seconds = timer.seconds(rival, steps);
  for (; seconds == 0; steps *= 2) {
    seconds = timer.seconds(rival, 2 * steps);
  }
  double each = seconds / static_cast<double>(steps);
  double start = 0;
  while (seconds > 0 && seconds < kLongEnough * wanted) {
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
  std::error_code error;
  ABT_CHECK(
      !fs::is_directory(args.config.config, error),
      Usage,
      "rivals: expected a configuration, got the folder '{}'; the "
      "configuration of a run is {}/config.yaml",
      args.config.config,
      args.config.config);
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
  Timer timer(path, list);
  std::vector<sweep::RivalPlan> timed;
  for (std::size_t i = 0; i < list.rivals.size(); ++i) {
    sweep::RivalPlan rival = list.rivals[i];
    log.live(formatted(
        "measuring {} ({} of {})", rival.name, i + 1, list.rivals.size()));
    rival.steps =
        args.steps ? *args.steps : steps_for(timer, rival, *args.seconds);
    if (args.seconds && rival.steps < kFewestSteps) {
      list.left_out.emplace_back(
          rival.name,
          rival.steps == 0
              ? "diverged in its first steps, as configured"
              : formatted(
                    "only {} steps fit into {} s", rival.steps, *args.seconds));
      log.warning(
          "{} is left out: {}", rival.name, list.left_out.back().second);
      continue;
    }
    log.info(
        "{}: {} steps; {}", rival.name, with_commas(rival.steps), rival.why);
    timed.push_back(std::move(rival));
  }
  log.live("");
  list.rivals = std::move(timed);
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
