// A folder that does not outlive the work in it.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"

namespace abtrain::app {

// When destroyed, removes a folder with its content, and the folders above it that did not exist
// before and are empty then.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
    for (std::filesystem::path above = folder_.parent_path();
         !above.empty() && !std::filesystem::exists(above); above = above.parent_path()) {
      above_.push_back(above);
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    for (const std::filesystem::path& above : above_) {
      std::filesystem::remove(above, ignored);
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const {
    return folder_.string();
  }

 private:
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> above_;
};

}  // namespace abtrain::app
