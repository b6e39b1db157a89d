// abtrain predict: classifies images or arrays with the model of a finished run.
#include "train/predict.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/machine_text.h"
#include "base/rows.h"
#include "choice_option.h"
#include "configuration.h"

namespace abtrain::app {

namespace {

struct PredictArgs {
  train::PredictOptions options;
  std::optional<Format> format;
  std::string output;
  bool force = false;
};

Format format_of(const PredictArgs& args) {
  if (args.format) {
    return *args.format;
  }
  const std::string ending = std::filesystem::path(args.output).extension().string();
  const Format format = ending == ".csv"                          ? Format::Csv
                        : ending == ".json" || ending == ".jsonl" ? Format::Json
                                                                  : Format::Table;
  ABT_CHECK(
      format != Format::Table || ending.empty() || ending == ".txt", Usage,
      "-o: expected a name that ends in .txt, .csv, .json or .jsonl, or --format; got '{}'",
      args.output);
  return format;
}

// Calls `line` for each file and each of its classes.
void each_class(const train::Predictions& predictions, const auto& line) {
  for (const train::Prediction& of : predictions.of_files) {
    for (std::size_t k = 0; k < of.classes.size(); ++k) {
      const auto number = static_cast<std::size_t>(of.classes[k]);
      line(
          of.file,
          predictions.class_names.empty() ? std::to_string(number)
                                          : predictions.class_names[number],
          of.probabilities[k]);
    }
  }
}

std::string predictions_table(const train::Predictions& predictions) {
  std::size_t file_width = 6;
  std::size_t class_width = 7;
  each_class(predictions, [&](const std::string& file, const std::string& name, double) {
    file_width = std::max(file_width, columns_of(printable(file)) + 2);
    class_width = std::max(class_width, columns_of(printable(name)) + 2);
  });
  std::string text = pad("file", file_width) + (predictions.regression
                                                    ? pad("target", class_width) + "value\n"
                                                    : pad("class", class_width) + "probability\n");
  each_class(
      predictions, [&](const std::string& file, const std::string& name, double probability) {
        text += formatted(
            "{}{}{}\n", pad(printable(file), file_width), pad(printable(name), class_width),
            predictions.regression ? formatted("{:.6g}", probability)
                                   : formatted("{:>9.2f} %", 100 * probability));
      });
  return text;
}

std::string predictions_csv(const train::Predictions& predictions) {
  std::string text =
      predictions.regression ? "file,target,value\r\n" : "file,class,probability\r\n";
  each_class(
      predictions, [&](const std::string& file, const std::string& name, double probability) {
        text += csv_line({file, name, formatted("{:.6g}", probability)}) + "\r\n";
      });
  return text;
}

std::string predictions_json(const train::Predictions& predictions) {
  std::string text;
  for (const train::Prediction& of : predictions.of_files) {
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    for (std::size_t k = 0; k < of.classes.size(); ++k) {
      nlohmann::ordered_json one = {{"class", of.classes[k]}};
      if (!predictions.class_names.empty()) {
        one["name"] = predictions.class_names[static_cast<std::size_t>(of.classes[k])];
      }
      one["probability"] = of.probabilities[k];
      classes.push_back(one);
    }
    text += predictions.regression
                ? json_text({{"file", of.file}, {"values", of.probabilities}}, -1)
                : json_text({{"file", of.file}, {"classes", classes}}, -1);
  }
  return text;
}

int run_predict(PredictArgs& args) {
  // Tables of other programs may begin like these, so only an empty file may be replaced without
  // --force.
  check_output(
      args.output, {"-o", "an empty file", [](const std::string&) { return false; }}, args.force);
  const Format format = format_of(args);
  const ChosenRun run = choose_model(args.options.model);
  Log log;
  const train::Predictions predictions = train::predict(run.options, args.options, log);
  const std::string text = format == Format::Csv    ? predictions_csv(predictions)
                           : format == Format::Json ? predictions_json(predictions)
                                                    : predictions_table(predictions);
  if (names_file(args.output)) {
    atomic_write(args.output, text);
  } else {
    print(text, /*exact=*/format != Format::Table);
  }
  return predictions.damaged == 0 ? 0 : static_cast<int>(ErrorKind::DamagedData);
}

}  // namespace

Command add_predict(CLI::App& parser) {
  auto args = std::make_shared<PredictArgs>();
  CLI::App& command = *parser.add_subcommand("predict", "run a trained model on images or arrays");
  add_run_options(command, args->options.model);
  command
      .add_option(
          "files", args->options.files,
          "JPEG, PNG or WebP files, or folders that hold them; for a run on arrays, .npy or "
          "safetensors files")
      ->required()
      ->type_name("FILE");
  in_range<std::int64_t>(
      command.add_option(
          "--top", args->options.top, "how many of the likeliest classes to show (default 1)"),
      1);
  add_format(
      command, args->format, {Format::Table, Format::Csv, Format::Json},
      "output format; json: an object per line (default: by the ending of -o, else table)");
  command
      .add_option(
          "-o,--output", args->output,
          "write to this file, which must not exist (or be empty); -: standard output")
      ->type_name("FILE");
  command.add_flag("--force", args->force, "replace an existing file");
  command.footer(
      "Examples:\n"
      "  abtrain predict runs/flowers rose.jpg tulip.jpg --top 3\n"
      "  abtrain predict runs/flowers@best photos/ -o photos.csv\n");
  return {&command, [args] { return run_predict(*args); }};
}

}  // namespace abtrain::app
