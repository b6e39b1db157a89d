#include "train/workers/worker_host.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "base/machine_text.h"
#include "base/mapped.h"
#include "base/socket.h"
#include "base/text.h"
#include "comm/failure.h"
#include "run_folder/run_lock.h"

namespace abtrain::train {

std::vector<std::string> Loss::lost() const {
  std::vector<std::string> names = before;
  for (const int worker : left) {
    names[static_cast<std::size_t>(worker)].clear();
  }
  std::erase(names, "");
  return names;
}

std::string Loss::text() const {
  const std::vector<std::string> names = lost();
  return names.empty()
             ? "a connection was lost"
             : formatted("{} {} lost", join(names, ", "), names.size() == 1 ? "is" : "are");
}

void Loss::keep(const std::vector<int>& these) {
  left = mapped(these, [&](int worker) { return left[static_cast<std::size_t>(worker)]; });
}

bool record_failure(
    const std::string& folder, const std::exception_ptr& error, int worker,
    const std::string& host) noexcept {
  try {
    if (folder.empty() || run_folder::lost_run_lock() || !std::filesystem::is_directory(folder)) {
      return true;
    }
    nlohmann::ordered_json json = {
        {"exit_code", comm::exit_code_of(error)},
        {"message", comm::message_of(error)},
        {"worker", worker},
        {"host", host},
        {"time", utc_now()}};
    if (const auto step = comm::step_of(error)) {
      json["step"] = *step;
    }
    // Unlike rename(), link() replaces no file: the first report stays.
    const std::string place = folder + "/failure.json";
    const std::string own = formatted("{}/failure-{}-{}.tmp", folder, host_name(), ::getpid());
    atomic_write(own, json_text(json));
    const bool is_first = ::link(own.c_str(), place.c_str()) == 0;
    if (is_first || errno == EEXIST) {
      std::filesystem::remove(own);
      return is_first;
    }
    std::filesystem::rename(own, place);  // a file system without hard links
  } catch (...) {
    // The message goes to standard error as well.
  }
  return true;
}

}  // namespace abtrain::train
