// abtrain export: writes the model of a run for other programs to load.
#include "weights/export.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/output.h"
#include "base/text.h"
#include "choice_option.h"
#include "configuration.h"
#include "python.h"
#include "temporary_folder.h"

namespace abtrain::app {

namespace {

struct ExportArgs : weights::ExportOptions {
  bool with_normalization = false;
};

bool is_program(const std::string& output) {
  return output.ends_with(".pt2") || output.ends_with(".onnx");
}

// Lets PyTorch's own exporters, which are in Python, write a program. The Python module also
// removes the temporary folder.
[[noreturn]] void export_program(ChosenRun run, const ExportArgs& args) {
  const TemporaryFolder folder(make_temporary_folder());
  weights::record_run(run.options, args, folder.path());
  run.made.reset();  // Python takes this program's place, so nothing is destroyed after that
  std::vector<std::string> arguments = {folder.path()};
  if (args.with_normalization) {
    arguments.emplace_back("--with-normalization");
  }
  arguments.insert(arguments.end(), {"--", args.output});
  become_python("_export.py", arguments);
}

}  // namespace

Command add_export(CLI::App& parser) {
  auto args = std::make_shared<ExportArgs>();
  CLI::App& command = *parser.add_subcommand(
      "export", "write the model of a run for PyTorch or ONNX: factored or merged");
  add_run_options(command, args->model);
  command
      .add_option(
          "-o,--output", args->output,
          "the safetensors file to write, or the folder of an adapter (an older one is replaced); "
          "-: standard output; FILE.pt2, FILE.onnx: a program for PyTorch or ONNX, by Python")
      ->required()
      ->type_name("FILE");
  add_force(command, args->force);
  using weights::ExportForm;
  add_choice<ExportForm>(
      command, "--form", args->form,
      {{"factored", ExportForm::Factored},
       {"merged", ExportForm::Merged},
       {"adapter", ExportForm::Adapter}},
      "factored: x.weight.A and .B (default); merged: dense weights, for "
      "load_state_dict; adapter: a folder for PEFT, of a run with method.remainder freeze");
  command.add_flag(
      "--with-normalization", args->with_normalization,
      "a program takes pixels of 0 to 255 and normalizes them itself");
  add_choice<nn::TensorNames>(
      command, "--names", args->names,
      {{"timm", nn::TensorNames::Timm}, {"torchvision", nn::TensorNames::Torchvision}},
      "naming scheme of the tensors (default: the run's model.names)");
  add_dtype_option(command, args->dtype, "dtype of all tensors (default fp32)");
  command.footer(
      "Examples:\n"
      "  abtrain export runs/my -o my.safetensors --form merged\n"
      "  abtrain export runs/my -o small.safetensors --dtype bf16\n"
      "  abtrain export runs/my -o my.onnx --with-normalization\n"
      "  abtrain export runs/tuned -o my_adapter --form adapter\n");
  return {&command, [args] {
            ChosenRun run = choose_model(args->model);
            if (is_program(args->output)) {
              export_program(std::move(run), *args);
            }
            ABT_CHECK(
                !args->with_normalization, Usage,
                "--with-normalization goes with -o FILE.pt2 or -o FILE.onnx");
            const std::string report = weights::export_run(run.options, *args);
            if (is_standard_output(args->output)) {
              std::cerr << printable(report, "\n");
            } else {
              print(report);
            }
            return 0;
          }};
}

}  // namespace abtrain::app
