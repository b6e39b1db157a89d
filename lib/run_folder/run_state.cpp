#include "run_folder/run_state.h"

#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "run_folder/run_lock.h"

namespace abtrain::run_folder {

namespace {

RunStatus failure_in(const std::string& path) {
  try {
    const JsonObject failure = JsonObject::of_file(path);
    const std::string text = failure.text("/message");
    const auto code = static_cast<int>(failure.integer("/exit_code", 0, 255));
    RunStatus status{
        RunState::Failed, formatted("exit code {}: {}", code, text.substr(0, text.find('\n'))),
        code};
    if (failure.find("/step") != nullptr) {
      status.step = failure.integer("/step", 0);
    }
    return status;
  } catch (const Error&) {
    return {RunState::Failed, "failure.json is damaged"};
  }
}

}  // namespace

const char* name_of(RunState state) {
  constexpr std::array kNames{"finished", "running", "failed", "killed", "stopped"};
  return kNames[static_cast<std::size_t>(state)];
}

RunStatus status_of(const std::string& folder) {
  if (is_there(folder + "/summary.json")) {
    return {};
  }
  const auto lock = look_at_lock(folder);
  if (lock && lock->is_held.value_or(false)) {
    return {RunState::Running, lock->holder};
  }
  // A run that fails writes the reason before it releases its lock.
  if (const std::string failure = folder + "/failure.json"; is_there(failure)) {
    return failure_in(failure);
  }
  if (lock && !lock->is_held) {
    return {RunState::Running, lock->holder + "; it may have ended: this file system has no locks"};
  }
  if (lock) {
    return {RunState::Killed, lock->holder};
  }
  return {RunState::Stopped};
}

}  // namespace abtrain::run_folder
