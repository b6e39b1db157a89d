// Inspects the machine and the program's own files: reports present and missing parts, and how to
// get the latter. Never throws because something is missing.
#pragma once

#include <string>
#include <vector>

namespace abtrain::train {

struct Finding {
  std::string topic;   // "CUDA"
  std::string text;    // what was found
  std::string advice;  // what to do about it; empty if all is well
};

std::vector<Finding> diagnose();

// The findings as a table, then the advice.
std::string format_findings(const std::vector<Finding>& findings);

}  // namespace abtrain::train
