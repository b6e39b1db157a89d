#include "base/process.h"

#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace abtrain {

bool is_stopped(pid_t process) {
  try {
    const std::string line = read_file(formatted("/proc/{}/stat", process));
    return line.substr(line.rfind(')') + 1).starts_with(" T ");  // "PID (NAME) STATE ..."
  } catch (const Error&) {
    return false;
  }
}

}  // namespace abtrain
