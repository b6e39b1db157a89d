#include "comm/run_workers.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <mutex>
#include <thread>

#include "comm/failure.h"
#include "comm/local/world.h"

namespace abtrain::comm {

void run_workers(
    int workers, double timeout_seconds, const std::function<void(Communicator&)>& body) {
  const auto world = std::make_shared<LocalWorld>(timeout_seconds);
#ifdef _OPENMP
  // From here on this thread only waits, so it ends its idle OpenMP threads. With them, OpenMP
  // would count more threads than cores and make the workers' threads sleep at every barrier
  // instead of spinning briefly.
  omp_pause_resource_all(omp_pause_soft);
#endif
  std::mutex mutex;
  std::exception_ptr root;
  std::vector<std::jthread> threads;
  try {
    for (auto& communicator : world->communicators(workers)) {
      threads.emplace_back([&, mine = std::move(communicator)] {
        try {
          body(*mine);
        } catch (...) {
          const auto error = std::current_exception();
          world->abort(error);
          const std::lock_guard lock(mutex);
          if (!root && !is_echo(error)) {
            root = error;
          }
        }
      });
    }
  } catch (...) {  // for example, the system refused to start a thread
    world->abort(std::current_exception());
    throw;
  }
  threads.clear();  // joins
  // If all errors were echoes, a time-out was the cause.
  if (const auto cause = root ? root : world->cause()) {
    std::rethrow_exception(cause);
  }
}

}  // namespace abtrain::comm
