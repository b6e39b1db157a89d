#include "train/workers/worker_host.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "base/machine_text.h"
#include "base/socket.h"
#include "run_folder/run_lock.h"

namespace abtrain::train {

void record_failure(
    const std::string& folder,
    int exit_code,
    const std::string& message,
    int worker) noexcept {
  try {
    if (folder.empty() || run_folder::lost_run_lock() ||
        !std::filesystem::is_directory(folder)) {
      return;
    }
    const nlohmann::ordered_json json = {
        {"exit_code", exit_code},
        {"message", message},
        {"worker", worker},
        {"host", host_name()},
        {"time", utc_now()}};
    atomic_write(folder + "/failure.json", json_text(json));
  } catch (...) {
    // The message goes to standard error as well.
  }
}

}  // namespace abtrain::train
