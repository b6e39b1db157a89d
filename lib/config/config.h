// Reading the configuration of a run: default < extended files < file < --set.
//
// All problems are reported at once, in one Error(Config), each as
// `file:line:column: error: key: what was expected, what came` with the source
// line and a caret. A file that is not there is Error(MissingInput).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/override.h"
#include "config/run_options.h"

namespace abtrain::config {

// What the place where the program runs adds to a configuration.
struct ConfigContext {
  // Searched, in order, for a file that is not found as it is named (and, for
  // `extends`, not beside the extending file).
  std::vector<std::string> folders;
  // Processes that a launcher (mpirun, srun, torchrun) has started, which are
  // the workers then; 0: no launcher.
  std::int64_t launched = 0;
};

// `path` may leave out ".yaml"; "" reads no file. An override is "a.b=value",
// its value YAML on one line: 3, [64, 64], {rule: fixed, rank: 3}.
RunOptions read_config(
    const std::string& path,
    const std::vector<std::string>& overrides = {},
    const ConfigContext& context = {});
// The same with overrides that were read already.
RunOptions read_config_with(
    const std::vector<Override>& overrides,
    const std::string& path,
    const ConfigContext& context);

// The file that a name without or with ".yaml" means, first found in `folders`
// ("": where the program runs). Error(MissingInput) names all places.
std::string find_config(
    const std::string& name,
    const std::vector<std::string>& folders);

// The usual folders: those of $ABTRAIN_CONFIGS (split at ':'), ./configs, and
// for a program PREFIX/bin/abtrain PREFIX/share/abtrain/configs, for one in
// SOURCE/build/PRESET/ SOURCE/configs.
std::vector<std::string> config_folders(const std::string& program);

// Every key, as YAML that reads back to equal options.
std::string to_yaml(const RunOptions& options);

// What a configuration is, in Markdown; words as the manual page has them too.
std::string config_introduction();

// The page docs/config.md: every key with its default, range and help.
std::string describe_options();

}  // namespace abtrain::config
