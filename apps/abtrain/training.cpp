#include "training.h"

#include <cstdlib>
#include <iostream>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/socket.h"
#include "hooks.h"
#include "temporary_folder.h"
#include "train/workers/processes.h"
#include "train/workers/setup_watch.h"

namespace abtrain::app {

int train_here(
    train::SessionOptions session, const ReadOptions& read, const std::function<void()>& after) {
  const StopSignals signals;  // in effect from start to end
  const comm::Launch launch = comm::find_launch();
  Log log(launch.rank == 0 ? LogLevel::Info : LogLevel::Quiet);
  std::optional<train::Processes> processes;
  if (launch.size > 1) {
    log.info("{}", launch.text());
    Log log_of_each;  // each process shows what it is waiting for
    train::SetupWatch watch(
        log_of_each,
        formatted(
            "{}: waiting for the others{}; each rank from 0 to {} must be started once",
            launch.text(), launch.port > 0 ? " at " + host_and_port(launch.host, launch.port) : "",
            launch.size - 1),
        train::SetupWatch::Shows::Once);
    if (launch.has_mpi && launch.rank != 0) {
      // mpirun stops all processes; one of them reports that.
      watch.set_leave([](const std::string&) { std::_Exit(static_cast<int>(ErrorKind::Stopped)); });
    }
    processes.emplace(launch, log);
    session.host = &*processes;
  }
  train::SetupWatch watch(log, "reading the configuration");
  session.watch = &watch;
  session.hooks = train_hooks();
  const auto train_once = [&](const config::RunOptions& options) {
    std::optional<TemporaryFolder> folder;
    if (session.leaves_nothing && launch.rank == 0) {
      folder.emplace(options.output);
    }
    app::print(train::train(options, session, log));
    if (launch.rank == 0) {
      after();
    }
  };
  if (!processes) {
    train_once(read(0, log));
    return 0;
  }
  watch.set_leave([&](const std::string& message) { processes->stop_before_start(message); });
  processes->set_waiting([&](const std::string& names) { watch.waiting_for(names); });
  processes->run([&] {
    try {
      config::RunOptions options;
      processes->all_or_none([&] { options = read(launch.size, log); });
      processes->set_timeout(options.train.timeout);
      train_once(options);
    } catch (...) {
      watch.end();
      throw;
    }
    return 0;
  });
}

}  // namespace abtrain::app
