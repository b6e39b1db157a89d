#include "run_folder/backlog.h"

#include <utility>

#include "base/error.h"

namespace abtrain::run_folder {

void Backlog::add(std::string_view bytes) {
  left_ += bytes;
  try {
    finish();
  } catch (const Error& error) {
    if (std::exchange(problem_, error.what()).empty()) {
      log_.warning("{}. The run continues and will write what is missing there later", problem_);
    }
  }
}

void Backlog::finish() {
  if (left_.empty()) {
    return;
  }
  write_(left_);
  left_.clear();
  if (const std::string problem = std::exchange(problem_, {}); !problem.empty()) {
    log_.info("everything that could not be written earlier has now been written ({})", problem);
  }
}

}  // namespace abtrain::run_folder
