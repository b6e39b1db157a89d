// abtrain sweep: trains many variants of one configuration, here or as a Slurm
// job array.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/machine_text.h"
#include "base/signals.h"
#include "choice_option.h"
#include "config/config.h"
#include "configuration.h"
#include "sweep/halving.h"
#include "sweep/point_state.h"
#include "sweep_slurm.h"
#include "train/workers/setup_watch.h"
#include "training.h"

namespace abtrain::app {

namespace {

namespace fs = std::filesystem;

struct SweepCommand {
  const CLI::App* command = nullptr;  // null: created by another command
  sweep::SweepArgs sweep;
  std::optional<std::int64_t> task;
  std::optional<std::int64_t> round;  // of a sweep with halving, from 1
  std::optional<std::int64_t> jobs;
  bool list = false;
  bool json = false;
  SlurmArgs slurm;
  bool force = false;
};

sweep::Sweep read_sweep(const SweepCommand& args) {
  return sweep::read_sweep(args.sweep, config_places());
}

// The points of the sweep. With halving, the points of the requested round (by default the first),
// which depend on the rounds before.
sweep::Round points_of(const SweepCommand& args, const sweep::Sweep& sweep) {
  ABT_CHECK(
      !args.round || sweep.halving, Usage, "--round is for sweeps with halving; {} has none",
      sweep.source());
  if (!sweep.halving) {
    return {.sweep = sweep, .runs = 1, .rivals = {}};
  }
  const std::size_t rounds = sweep::rounds_of(sweep);
  const std::int64_t round = args.round.value_or(1);
  ABT_CHECK(
      round >= 1 && round <= static_cast<std::int64_t>(rounds), Usage,
      "--round: expected 1 to {}, got {}", rounds, round);
  return sweep::round_of(sweep, static_cast<std::size_t>(round - 1));
}

int list_runs(const SweepCommand& args) {
  const sweep::Sweep whole = read_sweep(args);
  const sweep::Round round = points_of(args, whole);
  const auto runs =
      round.runs > 0 ? sweep::resolve_all(round.sweep) : std::vector<sweep::PointRun>();
  auto rows = nlohmann::ordered_json::array();
  std::string lines;
  for (const sweep::PointRun& run : runs) {
    const char* state = name_of(state_of(run));
    if (args.json) {
      rows.push_back(
          {{"index", run.index}, {"point", run.label}, {"folder", run.folder}, {"state", state}});
    } else {
      // A tab ends each cell and a newline each row, so names may contain neither of them.
      lines += formatted(
          "{}\t{}\t{}\t{}\n", run.index, printable(run.label), printable(run.folder), state);
    }
  }
  print(args.json ? json_text(rows) : lines, /*exact=*/true);
  return 0;
}

// The arguments that name this sweep in a batch file, valid in any folder.
std::vector<std::string> arguments_of(const SweepCommand& args, const sweep::Sweep& sweep) {
  std::vector<std::string> words;
  if (sweep.file.empty()) {
    words.emplace_back("--config");
  }
  words.push_back(fs::absolute(sweep.source()).lexically_normal().string());
  for (const char* option : {"--grid", "--set", "--seeds", "--name", "--output"}) {
    for (const std::string& value : args.command->get_option(option)->results()) {
      words.insert(words.end(), {option, value});
    }
  }
  return words;
}

// Trains one point in this process, or with a launcher's processes as workers. The last point to
// finish prints the report.
int train_task(const SweepCommand& args, std::int64_t task) {
  if (const sweep::Sweep whole = read_sweep(args); whole.halving) {
    // The array has as many jobs as the round can need at most; jobs beyond its runs train nothing.
    const sweep::Round round = points_of(args, whole);
    const auto most = static_cast<std::int64_t>(
        sweep::runs_in(whole, static_cast<std::size_t>(args.round.value_or(1) - 1)));
    if (task >= static_cast<std::int64_t>(round.runs) && task < most) {
      Log log;
      log.info("this round needs no run {}", task);
      if (round.is_last && round.runs == 0 && task == 0) {
        report_if_complete(round.sweep, true, log);
      }
      return 0;
    }
  }
  sweep::Round round;
  bool was_finished = false;
  bool has_rounds = false;
  const auto read = [&](std::int64_t launched, Log& log) {
    const sweep::Sweep whole = read_sweep(args);
    round = points_of(args, whole);
    has_rounds = whole.halving.has_value();
    const sweep::Sweep& sweep = round.sweep;
    const auto points = sweep::list_points(sweep);
    const auto count = static_cast<std::int64_t>(points.size());
    ABT_CHECK(
        task >= 0 && task < count, Usage, "--task: expected 0 to {}, as the sweep has {}{}; got {}",
        count - 1, count, count == 1 ? " point" : " points", task);
    const sweep::PointRun run = sweep::resolve(sweep, points[static_cast<std::size_t>(task)]);
    ABT_CHECK(
        launched == 0 || run.options.workers == launched, Config,
        "point {} ({}) has {} workers, but the launcher has started {} "
        "processes; start as many, or one process, whose threads are then the "
        "workers",
        task, run.label, run.options.workers, launched);
    if (round.is_full) {
      sweep::write_tuning(whole, round);
    }
    was_finished = own_state_of(run) == sweep::PointState::Finished;
    log_notes({run}, log);
    return run.options;
  };
  return train_here({.resume = "auto"}, read, [&] {
    if (!was_finished && round.is_last == has_rounds) {
      Log log;
      report_if_complete(round.sweep, has_rounds, log);
    }
  });
}

int train_all(const SweepCommand& args) {
  ABT_CHECK(
      !args.round, Usage, "--round goes with --task and --list; all rounds are trained in turn");
  const auto jobs = static_cast<std::size_t>(args.jobs.value_or(1));
  const comm::Launch launch = comm::find_launch();
  ABT_CHECK(
      launch.size == 1, Usage,
      "{} has started {} processes: they can be the workers of one point "
      "(--task N), but all points are run by one process",
      launch.source, launch.size);
  const StopSignals signals;
  Log log;
  train::SetupWatch watch(log, "checking the points");
  const sweep::Sweep sweep = read_sweep(args);
  if (sweep.halving) {
    watch.end();
    return train_rounds(sweep, jobs, log);
  }
  const auto runs = checked_runs(sweep, true);
  watch.end();
  log_notes(runs, log);
  return train_runs(runs, jobs, log);
}

int run_sweep(const SweepCommand& args) {
  const bool emits = args.slurm.file.has_value();
  const int verbs = (args.task ? 1 : 0) + (args.list ? 1 : 0) + (emits ? 1 : 0);
  ABT_CHECK(
      verbs <= 1, Usage, "--task, --list and --emit-slurm: expected one of them, got {}", verbs);
  ABT_CHECK(!args.json || args.list, Usage, "--json goes with --list");
  ABT_CHECK(
      !args.jobs || (!args.task && !args.list), Usage,
      "--jobs is for all points, trained here or with --emit-slurm");
  check_slurm(args.slurm, args.force);
  if (args.list || emits) {
    release_signals();
  }
  if (args.list) {
    return list_runs(args);
  }
  if (emits) {
    const sweep::Sweep whole = read_sweep(args);
    emit_slurm(
        args.slurm, whole, points_of(args, whole).sweep, arguments_of(args, whole), args.jobs);
    return 0;
  }
  const auto task = args.task || args.jobs ? args.task : env_integer("SLURM_ARRAY_TASK_ID");
  return task ? train_task(args, *task) : train_all(args);
}

}  // namespace

int train_sweep(const std::string& file) {
  SweepCommand args;
  args.sweep.file = file;
  return train_all(args);
}

Command add_sweep(CLI::App& parser) {
  auto args = std::make_shared<SweepCommand>();
  CLI::App& command =
      *parser.add_subcommand("sweep", "train many points of a configuration, here or under Slurm");
  command
      .add_option(
          "sweep", args->sweep.file,
          "a sweep file, with base, set, grid, list, exclude, seeds and "
          "halving")
      ->type_name("FILE");
  command
      .add_option(
          "-c,--config", args->sweep.config,
          "instead of a sweep file: the configuration that --grid varies")
      ->type_name("FILE");
  add_repeated(
      command, "--grid", args->sweep.grid, "a.b=VALUE,...",
      "values of one key; may be repeated, for all combinations");
  command
      .add_option(
          "--seeds", args->sweep.seeds,
          "number of seeds for each point, or a list of them: 3, or 1,5,7")
      ->type_name("INT|INT,...");
  add_repeated(
      command, "--set", args->sweep.sets, "a.b=VALUE",
      "override one key of all points; may be repeated");
  command.add_option("--name", args->sweep.name, "name of the sweep's folder")->type_name("NAME");
  command
      .add_option("--output", args->sweep.output, "folder in which the sweep's folder is created")
      ->type_name("FOLDER");
  in_range<std::int64_t>(
      command.add_option(
          "--jobs", args->jobs, "points to train at a time (default 1); they share the cores"),
      1, 65536);
  command.add_option(
      "--task", args->task,
      "train only this point, counted from 0, in this process (default "
      "$SLURM_ARRAY_TASK_ID where that is set)");
  command.add_option(
      "--round", args->round,
      "with --task or --list, of a sweep with halving: the round, counted from "
      "1 (default)");
  command.add_flag("--list", args->list, "print index, name, folder and state of each point");
  command.add_flag("--json", args->json, "print the list as JSON");
  add_slurm_options(command, args->slurm);
  add_force(command, args->force);
  command.footer(
      "Examples:\n"
      "  abtrain sweep my_sweep.yaml\n"
      "  abtrain sweep -c fashion_mnist_mlp --grid method.name=ab,ddp --seeds "
      "3\n"
      "  abtrain sweep my_sweep.yaml --list\n"
      "  abtrain sweep my_sweep.yaml --emit-slurm sweep.sbatch\n"
      "  abtrain sweep my_sweep.yaml --emit-slurm sweep.sbatch --points-per-job 4 \\\n"
      "    --sbatch=--partition=gpu --sbatch=--gres=gpu:h100:4\n");
  args->command = &command;
  return {&command, [args] { return run_sweep(*args); }, true};
}

}  // namespace abtrain::app
