#include "base/error.h"
#include "comm/mpi/world.h"

namespace abtrain::comm {

class MpiWorld::Engine {};

MpiWorld::MpiWorld(int, int) {
  throw Error(
      ErrorKind::Config,
      "comm: mpi: this build has no MPI; install it (Debian: libopenmpi-dev) "
      "and build again with -DABTRAIN_MPI=ON");
}

MpiWorld::~MpiWorld() = default;

std::unique_ptr<Communicator> MpiWorld::communicator() {
  return nullptr;
}

void MpiWorld::set_timeout(double) {}

void MpiWorld::abort(std::exception_ptr) noexcept {}

}  // namespace abtrain::comm
