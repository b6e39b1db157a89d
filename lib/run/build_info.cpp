#include "run/build_info.h"

#include <torch/headeronly/version.h>

#include "base/text.h"
#include "build_config.h"
#include "build_revision.h"
#include "run/nccl.h"

namespace abtrain::run {

BuildInfo build_info() {
  return {
      .version = build_config::kVersion,
      .revision = build_config::kRevision,
      .build_type = build_config::kBuildType,
      .compiler = build_config::kCompiler,
      .torch = TORCH_VERSION,
      .cuda = build_config::kCuda,
      .nccl = nccl_versions().compiled,
      .mpi = build_config::kMpi};
}

std::string version_line() {
  const BuildInfo info = build_info();
  return info.revision.empty() ? info.version
                               : str(info.version, " (", info.revision, ")");
}

}  // namespace abtrain::run
