#include "base/error.h"
#include "comm/nccl/world.h"

namespace abtrain::comm {

int nccl_version() {
  return 0;
}

NcclVersions nccl_versions() {
  return {};
}

bool nccl_shares_gpus() {
  return false;
}

std::shared_ptr<NcclWorld> NcclWorld::start(int, int, at::Device, double, const ShareBytes&, bool) {
  throw Error(
      ErrorKind::Config,
      "comm: nccl: this build has no NCCL; build with ABTRAIN_CUDA=ON and a "
      "LibTorch that was built with NCCL");
}

std::unique_ptr<Communicator> NcclWorld::communicator() {
  return nullptr;
}

void NcclWorld::abort(std::exception_ptr) noexcept {}

}  // namespace abtrain::comm
