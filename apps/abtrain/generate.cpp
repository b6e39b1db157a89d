// abtrain generate: lets the model of a finished run continue a text.
#include "train/generate.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "choice_option.h"
#include "configuration.h"

namespace abtrain::app {

Command add_generate(CLI::App& parser) {
  auto args = std::make_shared<train::GenerateOptions>();
  CLI::App& command = *parser.add_subcommand("generate", "let the model of a run continue a text");
  add_run_options(command, args->model);
  command
      .add_option(
          "--prompt", args->prompt,
          "the text to continue (default: a new line); for a run whose tokens "
          "are not bytes, token IDs separated by spaces, which are required")
      ->type_name("TEXT");
  in_range<std::int64_t>(
      command.add_option("--tokens", args->tokens, "how many tokens follow (default 500)"), 1,
      1'000'000);
  in_range(
      command.add_option(
          "--temperature", args->temperature,
          "sampling temperature; 0: always the most likely token (default 0.8)"),
      0.0, 100.0);
  in_range<std::int64_t>(
      command.add_option(
          "--top-k", args->top_k,
          "sample from this many of the most likely tokens only; 0: from all (default 0)"),
      0);
  command.add_option("--seed", args->seed, "seed of the sampling (default 1)")
      ->type_name("INT >= 0");
  command.footer(
      "Examples:\n"
      "  abtrain generate runs/gcide_gpt --prompt 'The quick'\n"
      "  abtrain generate runs/gcide_gpt --temperature 0 --tokens 200\n");
  return {&command, [args] {
            const ChosenRun run = choose_model(args->model);
            print(train::generate(run.options, *args) + "\n", /*exact=*/true);
            return 0;
          }};
}

}  // namespace abtrain::app
