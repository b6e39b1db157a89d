#include "train/build_info.h"

#include <torch/headeronly/version.h>

#include "base/text.h"
#include "build_config.h"
#include "build_revision.h"
#include "comm/nccl/world.h"

namespace abtrain::train {

BuildInfo build_info() {
  return {
      .version = build_config::kVersion,
      .revision = build_config::kRevision,
      .build_type = build_config::kBuildType,
      .compiler = build_config::kCompiler,
      .torch = TORCH_VERSION,
      .cuda = build_config::kCuda,
      .nccl = comm::nccl_versions().compiled,
      .mpi = build_config::kMpi};
}

std::string version_line() {
  const BuildInfo info = build_info();
  return info.revision.empty() ? info.version : formatted("{} ({})", info.version, info.revision);
}

}  // namespace abtrain::train
