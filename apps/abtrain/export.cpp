// abtrain export: writes the model of a run for other programs to load.
#include "weights/export.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/output.h"
#include "base/text.h"
#include "choice_option.h"
#include "configuration.h"

namespace abtrain::app {

Command add_export(CLI::App& parser) {
  auto args = std::make_shared<weights::ExportOptions>();
  CLI::App& command =
      *parser.add_subcommand("export", "write the model of a run for PyTorch: factored or merged");
  add_run_options(command, args->model);
  command
      .add_option(
          "-o,--output", args->output,
          "the safetensors file to write, or the folder of an adapter (an older one is replaced); "
          "-: standard output")
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
  add_choice<nn::TensorNames>(
      command, "--names", args->names,
      {{"timm", nn::TensorNames::Timm}, {"torchvision", nn::TensorNames::Torchvision}},
      "naming scheme of the tensors (default: the run's model.names)");
  add_dtype_option(command, args->dtype, "dtype of all tensors (default fp32)");
  command.footer(
      "Examples:\n"
      "  abtrain export runs/my -o my.safetensors --form merged\n"
      "  abtrain export runs/my -o small.safetensors --dtype bf16\n"
      "  abtrain export runs/tuned -o my_adapter --form adapter\n");
  return {&command, [args] {
            const ChosenRun run = choose_model(args->model);
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
