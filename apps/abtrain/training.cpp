#include "training.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "hooks.h"
#include "train/workers/processes.h"
#include "train/workers/setup_watch.h"

namespace abtrain::app {

void add_launch_options(CLI::App& command, comm::LaunchFlags& flags) {
  constexpr const char* kProcesses =
      "Processes (default: as set by mpirun, srun or torchrun)";
  command.add_option("--rank", flags.rank, "rank of this process, from 0")
      ->group(kProcesses);
  command.add_option("--processes", flags.processes, "number of processes")
      ->group(kProcesses);
  command
      .add_option(
          "--local-rank", flags.local_rank, "rank of this process on this host")
      ->group(kProcesses);
  command
      .add_option(
          "--local-processes",
          flags.local_processes,
          "number of processes on this host")
      ->group(kProcesses);
  command.add_option("--meet-at", flags.meet_at, "address of process 0's host")
      ->type_name("HOST:PORT")
      ->group(kProcesses);
}

namespace {

namespace fs = std::filesystem;

// Removes a folder with all that is in it, and those above it that did not
// exist before and are empty then.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(fs::path folder) : folder_(std::move(folder)) {
    for (fs::path above = folder_.parent_path();
         !above.empty() && !fs::exists(above);
         above = above.parent_path()) {
      above_.push_back(above);
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    for (const fs::path& above : above_) {
      fs::remove(above, ignored);
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

 private:
  fs::path folder_;
  std::vector<fs::path> above_;
};

}  // namespace

int train_here(
    const comm::LaunchFlags& flags,
    train::SessionOptions session,
    const ReadOptions& read) {
  const StopSignals signals;  // in effect from start to end
  const comm::Launch launch = comm::find_launch(flags);
  Log log(launch.rank == 0 ? LogLevel::Info : LogLevel::Quiet);
  train::SetupWatch watch(log, "reading the configuration");
  session.watch = &watch;
  session.hooks = train_hooks();
  const auto train_once = [&](const config::RunOptions& options) {
    std::optional<TemporaryFolder> folder;
    if (session.leaves_nothing && launch.rank == 0) {
      folder.emplace(fs::path(options.output));
    }
    app::print(train::train(options, session, log).table);
  };
  if (launch.size == 1) {
    train_once(read(0, log));
    return 0;
  }
  log.info("{}", launch.text());
  watch.doing("waiting for the other processes");
  if (launch.has_mpi && launch.rank != 0) {
    // mpirun stops all processes, and one of them reports it.
    watch.set_leave([](const std::string&) {
      std::_Exit(static_cast<int>(ErrorKind::Stopped));
    });
  }
  train::Processes processes(launch, log);
  session.host = &processes;
  watch.set_leave([&](const std::string& message) {
    processes.stop_before_start(message);
  });
  processes.run([&] {
    try {
      watch.doing("reading the configuration");
      config::RunOptions options;
      processes.all_or_none([&] { options = read(launch.size, log); });
      train_once(options);
    } catch (...) {
      watch.end();
      throw;
    }
    return 0;
  });
}

}  // namespace abtrain::app
