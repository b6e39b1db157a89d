// abtrain doctor: what this machine has, and what is missing.
#include "run/doctor.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/text.h"
#include "commands.h"
#include "run/build_info.h"

namespace abtrain::app {

Command add_doctor(CLI::App& parser) {
  CLI::App& command = *parser.add_subcommand(
      "doctor", "print what this machine has, what is missing, how to get it");
  return {&command, [] {
            print(run::format_findings(run::diagnose()));
            return 0;
          }};
}

std::string version_text() {
  return str("abtrain ", run::version_line());
}

}  // namespace abtrain::app
