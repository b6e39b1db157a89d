#include "run/build_info.h"

#include <torch/headeronly/version.h>

#include <system_error>

#include "base/env.h"
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

std::vector<std::string> config_folders(const std::filesystem::path& folder) {
  std::error_code failed;
  const auto installed = std::filesystem::weakly_canonical(
      folder / ".." / "share" / "abtrain" / "configs", failed);
  if (std::filesystem::is_directory(installed, failed)) {
    return {installed.string()};
  }
  const auto source =
      std::filesystem::path(build_config::kSourceFolder) / "configs";
  if (std::filesystem::is_directory(source, failed)) {
    return {source.string()};
  }
  return {};
}

std::vector<std::string> config_folders() {
  return config_folders(std::filesystem::path(program_path()).parent_path());
}

}  // namespace abtrain::run
