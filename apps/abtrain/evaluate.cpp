// abtrain evaluate: scores the model of a finished run.
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/log.h"
#include "commands.h"
#include "run/config.h"
#include "run/session.h"

namespace abtrain::app {

int run_evaluate(const EvaluateArgs& args) {
  const std::string config = args.run + "/config.yaml";
  ABT_CHECK(
      std::filesystem::exists(config),
      MissingInput,
      args.run,
      ": expected a run folder with config.yaml and model.safetensors");
  Log log;
  std::cout << run::evaluate_run(
                   run::read_config(config, args.sets),
                   args.run,
                   args.model,
                   log)
            << std::flush;
  return 0;
}

}  // namespace abtrain::app
