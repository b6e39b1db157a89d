#include "run/nccl.h"

namespace abtrain::run {

NcclVersions nccl_versions() {
  return {};
}

}  // namespace abtrain::run
