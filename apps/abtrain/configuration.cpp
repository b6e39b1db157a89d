#include "configuration.h"

#include "base/env.h"
#include "run/config.h"

namespace abtrain::app {

run::RunOptions read_configuration(
    const ConfigArgs& args, std::int64_t launched) {
  std::vector<std::string> sets = args.sets;
  if (!args.name.empty()) {
    sets.push_back("name=" + args.name);
  }
  if (!args.output.empty()) {
    sets.push_back("output=" + args.output);
  }
  run::ConfigContext context;
  context.launched = launched;
  context.folders = run::config_folders(program_path());
  return run::read_config(args.config, sets, context);
}

}  // namespace abtrain::app
