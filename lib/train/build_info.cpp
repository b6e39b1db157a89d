#include "train/build_info.h"

#include <torch/headeronly/version.h>

#include "build_config.h"
#include "build_revision.h"

namespace abtrain::train {

BuildInfo build_info() {
  return {
      .version = build_config::kVersion,
      .build_type = build_config::kBuildType,
      .compiler = build_config::kCompiler,
      .torch = TORCH_VERSION,
      .cuda = build_config::kCuda,
      .mpi = build_config::kMpi};
}

std::string version_line() {
  const std::string revision = build_config::kRevision;
  return build_config::kVersion + (revision.empty() ? "" : " (" + revision + ")");
}

}  // namespace abtrain::train
