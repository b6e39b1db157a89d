#include "config/config.h"

namespace abtrain::config {
namespace {

constexpr const char* kIntroduction =
    R"(A configuration is a YAML file; keys that it leaves out have the defaults
below. `extends: other.yaml` (or a list of files) starts from other files, which
are looked for next to the file and in the `configs` folders; `a.b=value` after
the configuration on the command line, or `--set a.b=value`, overrides single
keys. The order is default, extended files, file, overrides; the last one counts.
Where `train.steps` is overridden, here or by a sweep, the files' warm-ups (in
steps or epochs) that do not fit into the run are shortened to a tenth of it, and
the log says so; a warm-up that is overridden too stays as it is.

A length is a number of steps (`110`, `110 steps`) or of epochs (`2 epochs`,
`0.5 epochs`), or a share of the run (`5 %`). Keys of a method, optimizer or
rank rule that is not chosen are checked, but not used.
)";

}  // namespace

std::string config_introduction() {
  return kIntroduction;
}

}  // namespace abtrain::config
