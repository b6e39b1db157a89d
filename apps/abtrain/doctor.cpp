// abtrain doctor: prints what this machine has and what is missing.
#include "train/doctor.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/text.h"
#include "commands.h"
#include "train/build_info.h"

namespace abtrain::app {

Command add_doctor(CLI::App& parser) {
  CLI::App& command = *parser.add_subcommand(
      "doctor", "print what this machine has, what is missing and how to get it");
  return {&command, [] {
            print(train::format_findings(train::diagnose()));
            return 0;
          }};
}

std::string version_text() {
  return formatted("abtrain {}", train::version_line());
}

}  // namespace abtrain::app
