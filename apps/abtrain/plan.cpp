// abtrain plan: prints what a configuration will do and, on request, how long
// it will take. It trains nothing.
#include "plan/plan.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/machine_text.h"
#include "base/text.h"
#include "base/units.h"
#include "choice_option.h"
#include "config/config.h"
#include "configuration.h"
#include "link_option.h"
#include "methods/method_kind.h"
#include "plan/same_size.h"
#include "plan/small_shapes.h"
#include "sweep/method_table.h"

namespace abtrain::app {

namespace {

struct PlanArgs {
  ConfigArgs config;
  std::string same_size_as;
  bool methods = false;
  Format format = Format::Table;
  bool show_config = false;
  plan::Link link;
  std::optional<int> workers_here;
  std::string compute;  // DENSE[,AB[,DECOMPOSITION]]
};

plan::ComputeTime read_compute(const std::string& text) {
  const std::vector<std::string> parts = split_text(text, ',');
  ABT_CHECK(
      parts.size() <= 3, Usage,
      "--compute: expected one to three durations, DENSE[,AB[,DECOMPOSITION]]; got '{}'", text);
  const double dense = plan::seconds_in("--compute", parts[0]);
  return {
      .dense = dense,
      .ab = parts.size() > 1 ? plan::seconds_in("--compute", parts[1]) : dense,
      .decompose = parts.size() > 2 ? plan::seconds_in("--compute", parts[2]) : 0,
      .how = "as given"};
}

plan::TimeRequest request_of(const PlanArgs& args, const config::RunOptions& options) {
  const auto workers = static_cast<int>(options.workers);
  const plan::Network network = plan::network_of(args.link, options);
  ABT_CHECK(
      network.nodes > 1 || (args.link.bandwidth.empty() && args.link.latency.empty()), Usage,
      "--bandwidth and --latency describe the links between nodes, but all "
      "workers are on one");
  ABT_CHECK(
      args.workers_here.value_or(1) <= workers, Usage,
      "--workers-here: expected at most the {} workers; got {}", workers, *args.workers_here);
  ABT_CHECK(
      !args.workers_here || args.compute.empty(), Usage,
      "--workers-here is for measuring, but --compute gives the times instead");
  return {
      .network = network,
      .workers_here = args.workers_here.value_or(0),
      .compute = args.compute.empty() ? std::nullopt : std::optional(read_compute(args.compute))};
}

bool wants_time(const PlanArgs& args) {
  return args.link.nodes > 0 || !args.link.bandwidth.empty() || !args.link.latency.empty() ||
         args.workers_here || !args.compute.empty();
}

std::optional<plan::TimeRequest> time_wanted(
    const PlanArgs& args, const config::RunOptions& options) {
  return wants_time(args) ? std::optional(request_of(args, options)) : std::nullopt;
}

void print_json(const nlohmann::ordered_json& json) {
  print(json_text(json), /*exact=*/true);
}

config::RunOptions read_reference(const ConfigArgs& config, Log& log) {
  try {
    return read_configuration(config, log);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::MissingInput) {
      throw;
    }
    throw Error(
        error.kind(),
        formatted("--same-size-as: expected a run folder or a configuration; {}", error.what()));
  }
}

void run_same_size(const PlanArgs& args) {
  const std::string& reference = args.same_size_as;
  Log log;
  std::error_code error;
  const bool is_run = std::filesystem::is_directory(reference, error);
  ConfigArgs reference_config;
  reference_config.config = reference;
  ConfigArgs config = args.config;
  if (config.config.empty()) {
    config.config = is_run ? reference + "/config.yaml" : reference;
    reference_config = config;  // both are the same, so --set changes both
  }
  std::optional<config::RunOptions> theirs;
  if (!is_run) {
    theirs = read_reference(reference_config, log);
  }
  const plan::SizeTarget target =
      is_run ? plan::size_of_run(reference) : plan::planned_size(*theirs, reference);

  config::RunOptions options = read_configuration(config, log);
  const bool is_factored = methods::kind_of(options.method).factors_weights;
  if (!theirs) {
    reference_config.config = reference + "/config.yaml";
    theirs = read_reference(reference_config, log);
  }
  const bool can_match =
      methods::kind_of(theirs->method).factors_weights && theirs->model.name == options.model.name;
  constexpr const char* kDense = "method.name=ddp";
  if (is_factored) {
    config.sets.emplace_back(kDense);
    options = read_configuration(config, log);
  }
  plan::SmallShapes found =
      plan::small_shapes(options, target.parameters, can_match ? &*theirs : nullptr);
  if (is_factored) {
    for (plan::SmallShape& shape : found.shapes) {
      shape.size.overrides.insert(shape.size.overrides.begin(), kDense);
    }
  }
  const plan::SameSize& narrow = found.shapes.front().size;
  if (args.format == Format::Json) {
    auto json = plan::same_size_json(narrow, target);
    json["shapes"] = plan::shapes_json(found);
    print_json(json);
  } else {
    print(
        plan::plan_text(narrow.options, time_wanted(args, narrow.options)) +
        plan::same_size_text(narrow, target) + plan::shapes_text(found));
  }
}

void run_plain(const PlanArgs& args) {
  ABT_CHECK(
      !args.config.config.empty(), Usage,
      "plan: expected a configuration or --same-size-as RUN|CONFIG");
  Log log;
  const config::RunOptions options = read_configuration(args.config, log);
  const auto request = time_wanted(args, options);
  if (args.format == Format::Json) {
    print_json(plan::plan_json(options, request));
    return;
  }
  const std::string text = plan::plan_text(options, request);
  print(args.show_config ? config::to_yaml(options) : text);
}

void run_methods(const PlanArgs& args) {
  check_given(args.config);
  ABT_CHECK(args.same_size_as.empty(), Usage, "--methods does not go with --same-size-as");
  ABT_CHECK(
      args.compute.empty(), Usage,
      "--compute gives the times of one method, but --methods shows many; expected --workers-here "
      "to measure each of them, or neither for the time on the link alone");
  Log log;
  auto request = time_wanted(args, read_configuration(args.config, log));
  if (request && !args.workers_here) {
    request->compute = plan::ComputeTime{};
  }
  const auto folders = config_places();
  const std::string path = config::find_config("configuration", args.config.config, "", folders);
  const auto table = sweep::method_table(path, args.config.sets, request, folders, log);
  if (args.format == Format::Json) {
    print_json(sweep::method_table_json(table));
  } else {
    print(sweep::method_table_text(table));
  }
}

int run_plan(const PlanArgs& args) {
  const bool is_json = args.format == Format::Json;
  ABT_CHECK(
      !args.show_config ||
          (args.same_size_as.empty() && !args.methods && !is_json && !wants_time(args)),
      Usage,
      "--show-config prints a configuration and nothing else; expected none of "
      "--json, --methods, --same-size-as and the options about time");
  if (args.methods) {
    run_methods(args);
    return 0;
  }
  if (!args.same_size_as.empty()) {
    ABT_CHECK(
        !is_json || !wants_time(args), Usage,
        "--format json of --same-size-as says nothing about time; expected no "
        "--nodes, --bandwidth, --latency, --workers-here or --compute");
    run_same_size(args);
  } else {
    run_plain(args);
  }
  return 0;
}

}  // namespace

Command add_plan(CLI::App& parser) {
  auto args = std::make_shared<PlanArgs>();
  CLI::App& command =
      *parser.add_subcommand("plan", "print what would be trained and sent; train nothing");
  add_config_options(command, args->config);
  command
      .add_option(
          "--same-size-as", args->same_size_as,
          "find the model.width at which a dense network has "
          "as many parameters as the model of this finished run or "
          "configuration, and print its plan (with that configuration, dense, "
          "unless another is named)")
      ->type_name("RUN|CONFIG");
  command.add_flag(
      "--methods", args->methods,
      "compare all methods on this configuration in one table: bytes, memory, and with "
      "--bandwidth the seconds on that link");
  add_format(command, args->format, {Format::Table, Format::Json}, "output format (default table)");
  command.add_flag(
      "--show-config", args->show_config,
      "check the configuration, and print all of its keys in place of the "
      "plan");
  constexpr const char* kTime = "Time (measures some steps on this machine)";
  add_link(command, args->link, kTime);
  in_range<std::int64_t>(
      command.add_option(
          "--workers-here", args->workers_here,
          "workers that compute at once while measuring (default: those of one "
          "node)"),
      1)
      ->group(kTime);
  command
      .add_option(
          "--compute", args->compute,
          "use these times instead of measuring: of a dense step, a step of "
          "the AB phase and a decomposition, such as 120ms,30ms,2s")
      ->type_name("DENSE[,AB[,DECOMPOSITION]]")
      ->group(kTime);
  command.footer(
      "Examples:\n"
      "  abtrain plan fashion_mnist_mlp\n"
      "  abtrain plan my.yaml workers=8 --nodes 4 --bandwidth 1Gbit\n"
      "  abtrain plan my.yaml --methods --nodes 4 --bandwidth 1Gbit\n"
      "  abtrain plan --same-size-as runs/my\n"
      "  abtrain plan my.yaml workers=8 --show-config >complete.yaml\n");
  return {&command, [args] { return run_plan(*args); }};
}

}  // namespace abtrain::app
