#include "run_folder/run_state.h"

#include <array>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "run_folder/lock_file.h"

namespace abtrain::run_folder {

namespace {

std::string failure_in(const std::string& path) {
  try {
    const JsonObject failure = JsonObject::of_file(path);
    const std::string message = failure.text("/message");
    return formatted(
        "exit code {}: {}", failure.number("/exit_code"), message.substr(0, message.find('\n')));
  } catch (const Error&) {
    return "failure.json is damaged";
  }
}

std::string since(const LockHolder& holder) {
  return name_of(holder) + (holder.started.empty() ? "" : ", since " + holder.started);
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
  const auto lock = find_holder(folder);
  const bool is_here = lock && is_on_machine(lock->holder, this_process());
  if (is_here && is_alive(lock->holder)) {
    return {RunState::Running, since(lock->holder)};
  }
  // A run that fails writes why before it releases its lock.
  if (const std::string failure = folder + "/failure.json"; is_there(failure)) {
    return {RunState::Failed, failure_in(failure)};
  }
  if (is_here) {
    return {RunState::Killed, since(lock->holder)};
  }
  if (lock) {
    return {RunState::Running, since(lock->holder) + "; from here only its lock can be seen"};
  }
  return {RunState::Stopped};
}

}  // namespace abtrain::run_folder
