// abtrain rivals: finds the best method for this model, this data, this link and this time. Writes
// a sweep of all methods worth comparing, equally tuned and equally long, and trains it on request.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/mapped.h"
#include "base/output.h"
#include "base/rows.h"
#include "base/signals.h"
#include "base/text.h"
#include "choice_option.h"
#include "config/config.h"
#include "configuration.h"
#include "link_option.h"
#include "report/tuning.h"
#include "rival_lengths.h"
#include "sweep/halving.h"
#include "sweep/resolve_points.h"
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
  std::optional<std::int64_t> seeds;
  std::size_t tune = sweep::RivalsRequest().tune;
  std::string only;
  bool all = false;
  std::string small;
  bool run = false;
  bool dry_run = false;
  std::string file;
  bool force = false;
};

constexpr std::int64_t kSeeds = 3;          // default of --seeds
constexpr std::int64_t kFinalistSeeds = 5;  // for the two best rivals, without --seeds

// Returns the command line in one spelling, which is equal for equal choices: 30 or 30.0 seconds,
// an option left out or its default given.
std::string command_line(const RivalsCommand& args) {
  std::vector<std::string> words{"abtrain", "rivals", args.config.config};
  words.insert(words.end(), args.config.sets.begin(), args.config.sets.end());
  const auto add = [&](const char* option, const auto& value) {
    if (const std::string text = formatted("{}", value); !text.empty()) {
      words.insert(words.end(), {option, text});
    }
  };
  const auto number = [](const auto& value) {
    return value ? formatted("{}", *value) : std::string();
  };
  add("--name", args.config.name);
  add("--output", args.config.output);
  add("--seconds", number(args.seconds));
  add("--steps", number(args.steps));
  add("--size", number(args.ratio));
  add("--nodes", args.link.nodes > 0 ? std::to_string(args.link.nodes) : "");
  add("--bandwidth", args.link.bandwidth);
  add("--latency", args.link.latency);
  add("--small", args.small);
  add("--only", args.only);
  if (args.all) {
    words.emplace_back("--all");
  }
  add("--tune", args.tune);
  add("--seeds", number(args.seeds));
  return printable(join(words, " "));
}

// The short runs that measure a rival's length take this share of the time of a run.
constexpr double kMeasuringShare = 0.25;

constexpr std::string_view kMark = "# Made by: ";

std::string command_head(const RivalsCommand& args) {
  return formatted("{}{}\n", kMark, command_line(args));
}

// The first lines of a sweep file: the command, and a hash of the configuration, on which the
// rivals and their lengths depend.
std::string head_of(const RivalsCommand& args) {
  const auto folders = config_places();
  const std::string path = config::find_config("configuration", args.config.config, "", folders);
  const config::RunOptions options =
      config::read_config(path, args.config.sets, {.folders = folders, .shares_overrides = true});
  return formatted(
      "{}# Hash of the configuration: {}\n"
      "# A sweep of all methods that are worth weighing against each other: "
      "edit it, and\n# train it with `abtrain sweep FILE`.\n",
      command_head(args), hash_text(hash_of_text(sweep::content_of(options))));
}

bool is_rivals_file(const std::string& begin) {
  return begin.starts_with(kMark);
}

// The last line of a file tells whether the lines before it were edited.
std::string last_line_of(std::string_view text) {
  return formatted("# As written, without edits: {}\n", hash_text(hash_of_text(text)));
}

bool is_edited(const std::string& text) {
  const std::size_t end = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  const std::string before = text.substr(0, end == std::string::npos ? 0 : end + 1);
  return text != before + last_line_of(before);
}

void check(const RivalsCommand& args) {
  check_given(args.config);
  ABT_CHECK(
      !args.dry_run || !args.run, Usage,
      "--dry-run trains nothing; expected either it or --run, got both");
  ABT_CHECK(
      args.dry_run || args.seconds.has_value() != args.steps.has_value(), Usage,
      "rivals: expected --seconds N, the training time that each method gets, "
      "or --steps N; got {}",
      args.seconds ? "both" : "neither");
  ABT_CHECK(
      !args.seconds || (*args.seconds > 0 && *args.seconds <= plan::kMaxSeconds), Usage,
      "--seconds: expected a time above 0 and of at most a year, got {}", *args.seconds);
  ABT_CHECK(
      !args.ratio || (*args.ratio > 1 && *args.ratio <= 1e6), Usage,
      "--size: expected how many times fewer parameters AB-training stores, "
      "above 1, such as 10; got {}",
      *args.ratio);
  check_link(args.link);
  std::error_code error;
  ABT_CHECK(
      !fs::is_directory(args.config.config, error), Usage,
      "rivals: expected a configuration, got the folder '{}'; the "
      "configuration of a run is {}/config.yaml",
      args.config.config, args.config.config);
}

// The runs that the comparison of these rivals takes.
sweep::Work work_of(const sweep::RivalList& list, const RivalsCommand& args) {
  const std::int64_t seeds = args.seeds.value_or(kSeeds);
  const std::size_t count = list.rivals.size();
  const std::int64_t more = std::max<std::int64_t>(0, list.finalist_seeds - seeds);
  sweep::Work work = sweep::work_of(args.tune, static_cast<std::size_t>(seeds));
  const auto extra = static_cast<std::size_t>(count < 2 ? 0 : 2 * more);
  work.runs = count * work.runs + extra;
  work.lengths = static_cast<double>(count) * work.lengths + static_cast<double>(extra);
  return work;
}

// "13 rivals, 78 runs with their pilots"
std::string runs_text(const sweep::RivalList& list, const RivalsCommand& args) {
  const std::size_t count = list.rivals.size();
  return formatted(
      "{} {}, {} runs with their pilots", count, count == 1 ? "rival" : "rivals",
      work_of(list, args).runs);
}

// Says how long the comparison will take, before the rivals' lengths are measured.
void announce(const sweep::RivalList& list, const RivalsCommand& args, Log& log) {
  const double lengths = work_of(list, args).lengths;
  if (!args.seconds) {
    log.info(
        "{}: {} steps in all", runs_text(list, args),
        with_commas(std::llround(lengths * static_cast<double>(*args.steps))));
    return;
  }
  const std::string training = human_seconds(lengths * *args.seconds);
  log.info(
      "{}: {}, after short runs of about {} that tell their lengths", runs_text(list, args),
      args.link.bandwidth.empty()
          ? formatted("about {} of training", training)
          : formatted("at most {} of training, because nothing waits for the link here", training),
      human_seconds(kMeasuringShare * static_cast<double>(list.rivals.size()) * *args.seconds));
}

// Says how long the comparison will take, from the measured times of the short runs.
void announce_measured(const sweep::RivalList& list, const RivalsCommand& args, Log& log) {
  const sweep::Work work = work_of(list, args);
  const auto count = static_cast<double>(list.rivals.size());
  double seconds = 0;
  for (const sweep::RivalPlan& rival : list.rivals) {
    seconds +=
        (work.lengths * rival.seconds_here + static_cast<double>(work.runs) * rival.start_seconds) /
        count;
  }
  if (seconds > 0) {
    log.info(
        "{}: the comparison takes about {} on this machine; evaluations during the runs are extra",
        runs_text(list, args), human_seconds(seconds));
  }
}

// Returns the rivals for the command line, and logs the rivals that are left out.
sweep::RivalList list_of(const RivalsCommand& args, Log& log) {
  const auto folders = config_places();
  sweep::RivalsRequest request{.ratio = args.ratio, .all = args.all, .tune = args.tune};
  if (!args.small.empty()) {
    request.small = fs::absolute(args.small).lexically_normal().string();
  }
  for (const std::string& name : split_text(args.only, ',')) {
    if (!trim(name).empty()) {
      request.only.emplace_back(trim(name));
    }
  }
  const std::string path = config::find_config("configuration", args.config.config, "", folders);
  sweep::RivalList list = sweep::list_rivals(path, args.config.sets, request, folders);
  list.name = !args.config.name.empty() ? args.config.name : list.name + "_rivals";
  list.output = args.config.output;
  list.config = fs::absolute(path).lexically_normal().string();
  for (const sweep::LeftOut& one : list.left_out) {
    if (one.why == report::kNotAsked) {
      continue;  // the user asked for that
    }
    log.info("{} is left out: {}", one.name, one.why);
  }
  return list;
}

// The output of --dry-run: the rivals, and the layers of the small networks.
std::string dry_text(const sweep::RivalList& list) {
  const std::size_t widest = std::ranges::max(
      mapped(list.rivals, [](const sweep::RivalPlan& rival) { return rival.name.size(); }));
  std::string out = "rivals\n";
  for (const sweep::RivalPlan& rival : list.rivals) {
    out += "  " + pad(rival.name, widest + 2) + rival.why + "\n";
  }
  out += formatted("\nAB-training stores {} parameters.\n", with_commas(list.parameters));
  return out + (list.shapes.shapes.empty() ? "" : plan::shapes_text(list.shapes));
}

void write_rivals(
    const RivalsCommand& args, const std::string& head, const std::string& file, Log& log) {
  sweep::RivalList list = list_of(args, log);
  list.link = args.link;
  list.seconds = args.seconds.value_or(0);
  list.finalist_seeds = args.seeds ? 0 : kFinalistSeeds;
  announce(list, args, log);
  set_lengths(list, args.steps.value_or(0), log);
  ABT_CHECK(!list.rivals.empty(), Diverged, "no rival is left to train");
  announce_measured(list, args, log);
  const std::string text = sweep::rivals_yaml(list, args.seeds.value_or(kSeeds), head);
  atomic_write(file, text + last_line_of(text));
}

int run_rivals(const RivalsCommand& args) {
  check(args);
  if (args.dry_run) {
    Log log;
    print(dry_text(list_of(args, log)));
    return 0;
  }
  const std::string file =
      args.file.empty() ? fs::path(args.config.config).stem().string() + "_rivals.yaml" : args.file;
  check_replaceable(file, {"-o", "a sweep of rivals", is_rivals_file}, args.force);
  Log log;
  {
    const StopSignals signals;
    const std::string there = !args.force && is_there(file) ? read_file(file, kMaxText) : "";
    const bool edited = !there.empty() && is_edited(there);
    const std::string head = head_of(args);
    const bool continues = there.starts_with(head);
    const bool changed = !continues && there.starts_with(command_head(args));
    // An interrupted comparison continues with the lengths that were measured.
    if (args.run && continues) {
      log.info(
          "{}: written by this command before{}; it is continued", file,
          edited ? " and edited since" : "");
    } else {
      ABT_CHECK(
          !edited, Usage,
          "-o: '{}' has been edited since `abtrain rivals` wrote it{}; name another file with -o, "
          "or replace it with --force",
          file, changed ? ", and the configuration has changed" : "");
      if (changed) {
        log.info("{}: the configuration has changed since, so it is written anew", file);
      }
      write_rivals(args, head, file, log);
    }
    if (const int signal = StopSignals::requested(); signal != 0) {
      throw Error(
          ErrorKind::Stopped,
          formatted("stopped by {} before training; {} is there", signal_name(signal), file));
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
          "--seconds", args->seconds,
          "training time of each method on this machine; its number of steps "
          "follows from short runs")
      ->type_name("SECONDS");
  in_range<std::int64_t>(
      command.add_option("--steps", args->steps, "instead of --seconds: steps of each method"), 1,
      1'000'000'000);
  command
      .add_option(
          "--size", args->ratio,
          "how many times fewer parameters AB-training stores, which the small "
          "dense networks match (default: as configured, else 10)")
      ->type_name("RATIO");
  add_link(command, args->link);
  in_range<std::int64_t>(
      command.add_option(
          "--seeds", args->seeds,
          "seeds of each run at full length (default 3, and 5 for the two best methods)"),
      1, 1000);
  in_range<std::int64_t>(
      command.add_option(
          "--tune", args->tune,
          "settings that each method may try, in short pilots (default 4; 1: as "
          "configured)"),
      1, sweep::kMaxSettings);
  command.add_option("--only", args->only, "only these: " + join(sweep::rival_names(), ", "))
      ->type_name("NAME,...");
  command.add_flag("--all", args->all, "DiLoCo and local SGD as well");
  command
      .add_option(
          "--small", args->small,
          "for an exported model: the network that the small_... rivals train, exported "
          "too, with as many parameters as AB-training stores, up to 3 %")
      ->type_name("FILE");
  command.add_flag(
      "--dry-run", args->dry_run,
      "print the rivals, and the layers of the small networks; write and train nothing");
  command.add_flag("--run", args->run, "train the sweep and report; the same command continues it");
  command
      .add_option(
          "-o,--file", args->file, "the sweep file to write (default: CONFIG_rivals.yaml here)")
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
