// abtrain report: compares runs.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/terminal.h"
#include "choice_option.h"
#include "configuration.h"
#include "link_option.h"
#include "report/formats.h"
#include "report/front.h"
#include "report/html_report.h"
#include "report/select.h"
#include "report/verdict.h"
#include "report_args.h"
#include "sweep/halving.h"

namespace abtrain::app {

namespace {

Format format_of(const ReportArgs& args) {
  if (args.format) {
    return *args.format;
  }
  const std::string ending = std::filesystem::path(args.file).extension();
  const Format format = ending == ".html" || ending == ".htm" ? Format::Html
                        : ending == ".csv"                    ? Format::Csv
                        : ending == ".json"                   ? Format::Json
                        : ending == ".md"                     ? Format::Markdown
                                                              : Format::Table;
  ABT_CHECK(
      format != Format::Table || ending.empty() || ending == ".txt", Usage,
      "-o: expected a name that ends in .txt, .csv, .json, .md or .html, or "
      "--format; got '{}'",
      args.file);
  return format;
}

// Recognizes a report by its beginning, in any of the formats.
bool is_report(const std::string& begin) {
  std::string first = begin.substr(0, begin.find('\n'));
  // Reports of rivals begin with the answer, in a paragraph of its own.
  if (const auto end = begin.find("\n\n"); end == first.size()) {
    first = begin.substr(end + 2, begin.find('\n', end + 2) - end - 2);
  }
  return begin.find("<title>abtrain report</title>") != std::string::npos ||
         first.starts_with("name,runs,finished") || begin.starts_with("{\n  \"target\":") ||
         first.starts_with("| run |") ||
         (first.starts_with("run ") && first.find("seeds") != std::string::npos);
}

std::string written(const report::Comparison& comparison, Format format, const ReportArgs& args) {
  const bool for_machines = format == Format::Csv || format == Format::Json;
  const auto columns = args.front ? report::front_columns(args.target)
                                  : report::choose_columns(
                                        !args.columns.empty() ? args.columns
                                        : for_machines        ? "all"
                                                              : "default",
                                        args.target);
  switch (format) {
    case Format::Csv:
      return report::as_csv(comparison, columns);
    case Format::Json:
      return report::as_json(comparison, columns);
    case Format::Markdown:
      return report::as_markdown(comparison, columns);
    case Format::Html:
      return report::as_html(
          comparison, columns,
          formatted("Made by {}, {}", version_text(), utc_now("%F %H:%M UTC")));
    case Format::Table:
      break;
  }
  return report::as_table(comparison, columns, !names_file(args.file) && wants_color(1));
}

// Adds the time that each finished run would take on the link.
void add_link_seconds(report::Comparison& comparison, const plan::Link& link) {
  for (report::Setting& setting : comparison.settings) {
    for (report::RunRecord& run : setting.runs) {
      if (run.summary) {
        run.summary->link_seconds =
            sweep::seconds_of(read_run_configuration(run.folder), run.folder, link);
      }
    }
  }
}

// Names the link for which the seconds are computed, or else the machine that trained the runs.
std::string place_text(const report::Comparison& comparison, const plan::Link& link) {
  if (link.bandwidth.empty() || comparison.settings.empty()) {
    return "where the runs were trained";
  }
  const std::string& folder = comparison.settings.front().runs.front().folder;
  return plan::link_text(plan::network_of(link, read_run_configuration(folder)));
}

}  // namespace

void run_report(const ReportArgs& args) {
  ABT_CHECK(
      !args.target || (*args.target > 0 && *args.target <= 64), Usage,
      "--target: expected an accuracy above 0 and at most 1, such as 0.86, or "
      "bits per byte, such as 1.9; got {}",
      *args.target);
  const Format format = format_of(args);
  ABT_CHECK(
      !args.front || args.columns.empty(), Usage,
      "--front has columns of its own: leave out --columns");
  ABT_CHECK(
      !args.front || format != Format::Csv, Usage,
      "--front marks what is on the front, and csv has no marks; expected "
      "another --format");
  check_link(args.link);
  check_output(args.file, {"-o", "a report", is_report}, args.force);
  ABT_CHECK(
      format != Format::Html || names_file(args.file) || !is_tty(1), Usage,
      "--format html: the page has several megabytes, too much for a terminal; "
      "name a file, such as -o report.html");
  auto comparison = report::compare(
      args.runs, args.target,
      format == Format::Html ? report::Spectra::Read : report::Spectra::Skip,
      report::read_conditions(args.where));
  const auto tuning = report::read_tuning(comparison.settings);
  const auto question = tuning ? tuning->question : std::nullopt;
  plan::Link link = args.link;
  if (link.bandwidth.empty() && question) {
    link = {question->bandwidth, question->latency, question->nodes};
  }
  if (!link.bandwidth.empty()) {
    add_link_seconds(comparison, link);
  }
  if (!args.sort.empty()) {
    report::sort_settings(comparison, args.sort);
  }
  if (question) {
    comparison.answer = report::best_within(
        comparison.settings, question->seconds, place_text(comparison, link),
        report::is_partial(*tuning));
  }
  if (args.front) {
    comparison.verdict = report::verdict(comparison.settings, question ? question->seconds : 0);
    comparison.tuning = tuning;
    if (tuning && report::is_partial(*tuning)) {
      comparison.verdict.emplace_back(
          "All of this is said of those that ran: --only left out other usual rivals.");
    }
  }
  for (const std::string& line : comparison.skipped) {
    std::cerr << printable(line) << "; skipped\n";
  }
  for (const std::string& line : report::unfinished_runs(comparison)) {
    std::cerr << printable(line) << "\n";
  }
  const std::string text = written(comparison, format, args);
  if (names_file(args.file)) {
    atomic_write(args.file, text);
  } else if (format == Format::Table) {
    std::cout << text << std::flush;  // its names are escaped already
  } else {
    print(text, /*exact=*/true);
  }
}

Command add_report(CLI::App& parser) {
  auto args = std::make_shared<ReportArgs>();
  CLI::App& command =
      *parser.add_subcommand("report", "compare runs: accuracy, bytes, time to an accuracy, speed");
  command.add_option("run", args->runs, "run folders, or folders that hold run folders")
      ->required()
      ->type_name("RUN");
  command
      .add_option(
          "--target", args->target,
          "show the time to this accuracy, 0 to 1, or for text to this many bits per byte")
      ->type_name("FLOAT");
  add_format(
      command, args->format,
      {Format::Table, Format::Csv, Format::Json, Format::Markdown, Format::Html},
      "output format (default: by the ending of -o, else table)");
  command
      .add_option(
          "--columns", args->columns,
          "all, default, or keys such as accuracy,bytes (default for csv and "
          "json: all)")
      ->type_name("LIST");
  add_repeated(
      command, "--where", args->where, "a.b=VALUE",
      "only runs with this value of a key; may be repeated, and several values of one key match "
      "any of them");
  one_of(
      command.add_option(
          "--sort", args->sort,
          "sort by this column, the best first (default: by data, then by the "
          "time to the target, then by accuracy)"),
      report::sort_keys());
  command.add_flag(
      "--front", args->front,
      "show accuracy, seconds, bytes and parameters, mark the runs that no "
      "other one beats in accuracy and that cost (the page always draws it), "
      "and say who wins within which budget");
  add_link(command, args->link, "The seconds that each run would take on another network");
  command
      .add_option(
          "-o,--output", args->file,
          "write the report to this file (an older report is replaced); -: "
          "standard output")
      ->type_name("FILE");
  add_force(command, args->force);
  command.footer(
      "Examples:\n"
      "  abtrain report runs/*\n"
      "  abtrain report runs --target 0.86 -o report.html\n"
      "  abtrain report runs --front\n"
      "  abtrain report runs --where data.name=cifar10 --sort bytes\n");
  return {&command, [args] {
            run_report(*args);
            return 0;
          }};
}

}  // namespace abtrain::app
