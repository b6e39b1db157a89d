#include "train/build_info.h"

#include "build_config.h"
#include "build_revision.h"

namespace abtrain::train {

std::string version_line() {
  const std::string revision = build_config::kRevision;
  return build_config::kVersion + (revision.empty() ? "" : " (" + revision + ")");
}

}  // namespace abtrain::train
