// abtrain decompose: cuts the weights of any PyTorch model to low rank.
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/machine_text.h"
#include "base/options_apply.h"
#include "base/output.h"
#include "base/scalars.h"
#include "base/text.h"
#include "choice_option.h"
#include "config/override.h"
#include "configuration.h"
#include "device/memory.h"
#include "train/setup.h"
#include "weights/decompose_file.h"

namespace abtrain::app {

namespace {

struct DecomposeArgs {
  weights::DecomposeOptions options;
  // The options given for the rank rule (linalg::fields_of), by key.
  std::map<std::string, std::string> rule;
  std::string budget;
  Format format = Format::Table;
  bool dry_run = false;
};

// Sets the rule that other options imply: --keep alone means --rule energy.
void find_rule(DecomposeArgs& args) {
  std::string& rule = args.rule["rule"];
  if (!args.budget.empty()) {
    ABT_CHECK(
        rule.empty() || rule == "budget", Usage,
        "--budget belongs to --rule budget, not to --rule {}", rule);
    rule = "budget";
  }
  for (const linalg::RankRuleKind& k : linalg::rank_rules()) {
    if (rule.empty() && !args.rule[k.key].empty()) {
      ABT_CHECK(
          k.key != std::string("ratio"), Usage,
          "--ratio is ambiguous: add --rule ratio (for each matrix) or --rule budget (for the "
          "whole file)");
      rule = k.name;
    }
  }
}

void read_rule(DecomposeArgs& args) {
  find_rule(args);
  Value section;
  section.kind = Value::Kind::Section;
  for (const auto& [key, text] : args.rule) {
    if (!text.empty()) {
      const Location place{"--" + key, 0, 0, ""};
      section.entries.push_back({key, place, config::literal_override(key, text, place).value});
    }
  }
  ReadResult reading;
  apply(linalg::fields_of(args.options.rule), section, reading);
  for (Problem& problem : reading.problems) {
    problem.key.clear();  // the option's name says it
  }
  throw_any(reading.problems, ErrorKind::Usage);
  for (const linalg::RankRuleKind& k : linalg::rank_rules()) {
    for (const auto& [key, text] : args.rule) {
      ABT_CHECK(
          args.rule["rule"] != k.name || text.empty() || key == "rule" || key == "multiple" ||
              key == k.key || (k.limit != nullptr && key == k.limit),
          Usage, "--{} does not belong to --rule {}, which takes --{}", key, k.name, k.key);
    }
  }
  if (!args.budget.empty()) {
    std::string why;
    ABT_CHECK(
        parse_bytes(args.budget, args.options.budget_bytes, why), Usage,
        "--budget: expected a size, such as 20MB; got '{}'{}", args.budget,
        why.empty() ? "" : ": " + why);
    ABT_CHECK(
        args.rule["ratio"].empty(), Usage, "--budget and --ratio both set the size: give only one");
  }
}

int run_decompose(DecomposeArgs& args) {
  read_rule(args);
  ABT_CHECK(
      args.dry_run || !args.options.output.empty(), Usage,
      "-o FILE is required (or --dry-run, which only reports)");
  if (args.dry_run) {
    args.options.output.clear();
  }
  device::return_freed_memory();
  at::set_num_threads(train::threads_per_worker({}, 1));
  Log log;
  const weights::DecomposeReport report = weights::decompose_file(args.options, log);
  const bool is_table = args.format == Format::Table;
  const std::string text = args.format == Format::Json ? json_text(weights::decompose_json(report))
                           : is_table                  ? weights::decompose_table(report)
                                                       : weights::decompose_csv(report);
  // If the file is written to standard output, the report goes to standard error.
  if (report.written && is_standard_output(args.options.output)) {
    std::cerr << printable(text, "\n");
  } else {
    print(text, /*exact=*/!is_table);
  }
  return 0;
}

void add_rule_options(CLI::App& command, DecomposeArgs& args) {
  linalg::RankRule defaults;
  const Fields fields = linalg::fields_of(defaults);
  for (const Field& field : fields.list()) {
    command
        .add_option(
            "--" + field.key, args.rule[field.key],
            formatted("{} (default {})", field.help, field.print()))
        ->type_name(
            !field.choices.empty()                   ? join(field.choices, "|")
            : field.wanted.starts_with("an integer") ? "INT"
                                                     : "FLOAT");
  }
  command
      .add_option(
          "--budget", args.budget,
          "size of the whole file, such as 20MB: the best ranks that fit "
          "(--rule budget)")
      ->type_name("SIZE");
}

}  // namespace

Command add_decompose(CLI::App& parser) {
  auto args = std::make_shared<DecomposeArgs>();
  weights::DecomposeOptions& options = args->options;
  CLI::App& command =
      *parser.add_subcommand("decompose", "cut the weights of any PyTorch model to low rank");
  command
      .add_option(
          "input", options.input,
          "a safetensors file, an index of shards, or a folder that holds one")
      ->required()
      ->type_name("IN");
  command
      .add_option(
          "-o,--output", options.output,
          "the file to write (an older one is replaced); -: standard output")
      ->type_name("OUT");
  add_force(command, options.force);
  add_rule_options(command, *args);
  add_repeated(
      command, "--keep-dense", options.keep_dense, "GLOB",
      "a tensor or layer to copy unchanged; may be repeated");
  add_repeated(
      command, "--only", options.only, "GLOB",
      "a tensor or layer to cut, all others are copied; may be repeated");
  in_range<std::int64_t>(
      command.add_option(
          "--blocks", options.blocks,
          "cut each matrix as a grid of so many blocks per side, or as many as divide its first "
          "two sizes (default 1)"),
      1, 64);
  in_range<std::int64_t>(
      command.add_option(
          "--min-size", options.min_size, "copy matrices of fewer elements unchanged (default 0)"),
      0);
  add_dtype_option(command, options.dtype, "dtype of the factors (default: that of the tensor)");
  add_format(
      command, args->format, {Format::Table, Format::Csv, Format::Json},
      "format of the report (default table)");
  command.add_flag("--dry-run", args->dry_run, "only report; write nothing");
  command.footer(
      "Examples:\n"
      "  abtrain decompose resnet50.safetensors --keep 0.9 --dry-run\n"
      "  abtrain decompose resnet50.safetensors --budget 20MB -o "
      "small.safetensors\n");
  return {&command, [args] { return run_decompose(*args); }};
}

}  // namespace abtrain::app
