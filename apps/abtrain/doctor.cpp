#include "run/doctor.h"

#include <iostream>

#include "base/text.h"
#include "commands.h"
#include "run/build_info.h"

namespace abtrain::app {

int run_doctor() {
  std::cout << run::format_findings(run::diagnose());
  return 0;
}

std::string version_text() {
  return str("abtrain ", run::version_line());
}

}  // namespace abtrain::app
