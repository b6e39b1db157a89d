// The arguments of `abtrain report`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choice_option.h"
#include "plan/time.h"

namespace abtrain::app {

struct ReportArgs {
  std::vector<std::string> runs;   // run folders, or folders that hold some
  std::optional<double> target;    // an accuracy from 0 to 1, or bits per byte
  std::optional<Format> format;    // nullopt: by the file's ending, else table
  std::vector<std::string> where;  // "method.name=ab"
  std::string sort;                // "": by data, time to the target, quality
  std::string columns;             // "": depends on the format
  std::string file;                // "" and "-": standard output
  plan::Link link;                 // "": no column about a link
  bool front = false;
  bool force = false;
};

void run_report(const ReportArgs& args);

}  // namespace abtrain::app
