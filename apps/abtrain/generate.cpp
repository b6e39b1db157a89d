// abtrain generate: lets the model of a finished run continue a text.
#include "train/generate.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "configuration.h"

namespace abtrain::app {

Command add_generate(CLI::App& parser) {
  auto args = std::make_shared<train::GenerateOptions>();
  CLI::App& command = *parser.add_subcommand(
      "generate", "let the model of a run continue a text");
  add_run_options(command, args->folder, args->model);
  command
      .add_option(
          "--prompt",
          args->prompt,
          "the text to continue (default: a new line); for a run whose tokens "
          "are not bytes, their numbers with spaces between them, which must "
          "be given")
      ->type_name("TEXT");
  command
      .add_option(
          "--tokens", args->tokens, "how many tokens follow (default 500)")
      ->check(CLI::Range(1, 1'000'000));
  command
      .add_option(
          "--temperature",
          args->temperature,
          "divides the logits before a token is drawn; 0: always the likeliest "
          "token (default 0.8)")
      ->check(CLI::Range(0.0, 100.0));
  command
      .add_option(
          "--top-k",
          args->top_k,
          "draw among this many of the likeliest tokens; 0: among all (default "
          "0)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--seed", args->seed, "of the drawn tokens (default 1)");
  command.footer(
      "Examples:\n"
      "  abtrain generate runs/gcide_gpt --prompt 'The quick'\n"
      "  abtrain generate runs/gcide_gpt --temperature 0 --tokens 200\n");
  return {
      &command, [args] {
        print(
            train::generate(read_run_configuration(args->folder), *args) + "\n",
            /*exact=*/true);
        return 0;
      }};
}

}  // namespace abtrain::app
