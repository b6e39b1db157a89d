#include <nccl.h>

#include "base/text.h"
#include "run/nccl.h"

namespace abtrain::run {

namespace {

std::string version_text(int code) {
  return str(code / 10000, ".", code / 100 % 100, ".", code % 100);
}

}  // namespace

NcclVersions nccl_versions() {
  int loaded = 0;
  const bool told = ncclGetVersion(&loaded) == ncclSuccess;
  return {version_text(NCCL_VERSION_CODE), told ? version_text(loaded) : ""};
}

}  // namespace abtrain::run
