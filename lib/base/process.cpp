#include "base/process.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace abtrain {

std::optional<ProcessState> process_state(pid_t pid) {
  std::string line;
  try {
    line = read_file(formatted("/proc/{}/stat", pid));
  } catch (const Error&) {
    return std::nullopt;
  }
  const std::size_t name_end = line.rfind(')');  // "PID (NAME) STATE ..."
  if (name_end == std::string::npos || name_end + 2 > line.size()) {
    return std::nullopt;
  }
  const auto words = split_text(line.substr(name_end + 2), ' ');
  if (words.size() < 20 || words[0].empty()) {
    return std::nullopt;
  }
  // The first thread may have ended while others are still running.
  const bool is_last = words[17] == "0" || words[17] == "1";
  const char letter = words[0][0];
  return ProcessState{letter, (letter == 'Z' || letter == 'X') && is_last, words[19]};
}

}  // namespace abtrain
