#include "commands.h"

namespace abtrain::app {

int run_doctor() {
  return 0;
}

std::string version_text() {
  return "abtrain";
}

}  // namespace abtrain::app
