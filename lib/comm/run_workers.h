// Runs `body` on one thread per worker; the communicators belong to one LocalWorld.
//
// Returns when all threads have ended. When one throws, the others end with Error(PeerLost) at
// their next collective; the first error that is not such an echo is rethrown here.
#pragma once

#include <functional>

#include "comm/communicator.h"

namespace abtrain::comm {

void run_workers(
    int workers, double timeout_seconds, const std::function<void(Communicator&)>& body);

}  // namespace abtrain::comm
