// Reads the configuration of a run. Later sources override earlier ones: defaults, files named by
// `extends`, the file, --set.
//
// All problems are reported at once, in one Error(Config), each as
// `file:line:column: error: key: what was expected, what was found` with the
// source line and a caret. A missing file is Error(MissingInput).
//
// Some values adapt to how the run is started. Without the key `workers`, a method that trains two
// factors gets two workers. Under a launcher, its processes are the workers, whatever a file says.
// With an override `train.steps=N`, the file's warm-ups are shortened to fit into N steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "config/override.h"
#include "config/run_options.h"

namespace abtrain::config {

// The caller's settings for reading a configuration.
struct ConfigContext {
  // Folders searched, in order, for a file that is not found under the given name (for `extends`,
  // nor next to the extending file).
  std::vector<std::string> folders = {};
  // Number of processes that a launcher (mpirun, srun, torchrun) has started,
  // which are then the workers; 0: no launcher.
  std::int64_t launched = 0;
  // Whether warm-ups from overrides are also shortened if they do not fit (config/short_run.h).
  bool shortens_all = false;
  // Whether the same overrides serve several configurations. Those without effect in this one are
  // then ignored, as in a file.
  bool shares_overrides = false;
  // Parsed overrides that apply after all others: command-line options such as --name, or the point
  // of a sweep.
  std::vector<Override> last = {};
  // Receives remarks, such as that a value was changed to fit the launcher or the length of the
  // run; may be null.
  std::vector<std::string>* notes = nullptr;
  // Fifo::Wait if a user named the files, because they may then be FIFOs.
  Fifo fifo = Fifo::Refuse;
};

// `path` may omit ".yaml"; "" reads no file. An override is "a.b=value", with
// the value as YAML on one line: 3, [64, 64], {rule: fixed, rank: 3}.
RunOptions read_config(
    const std::string& path, const std::vector<std::string>& overrides = {},
    const ConfigContext& context = {});

// Finds the file for a name with or without ".yaml": in the folder `first` ("": the current one),
// else in `folders`, in order. Throws Error(MissingInput), which names all places. `what`: the kind
// of file, for that message.
std::string find_config(
    const char* what, const std::string& name, const std::string& first,
    const std::vector<std::string>& folders);

// The usual folders: those in $ABTRAIN_CONFIGS (split at ':'), ./configs,
// PREFIX/share/abtrain/configs for a program PREFIX/bin/abtrain, and
// SOURCE/configs for a program in SOURCE/build/PRESET/.
std::vector<std::string> config_folders(const std::string& program);

// Returns every key that has an effect, as YAML that parses back to equal values.
std::string to_yaml(const RunOptions& options);

// Returns the sections `model` and `data` of a trained network as YAML, to be stored in the
// network's file. Keys about the start of training and the reading of data get their defaults;
// model.file loses its folder, and `data.root`, if set, becomes the current folder.
std::string network_yaml(const RunOptions& options);

}  // namespace abtrain::config
