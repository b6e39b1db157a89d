// A setting in words: its data, model, method, length and state. The traits are the same in every
// output format; tables show those that tell rows apart.
#pragma once

#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

struct Trait {
  std::string key;                              // "method": its name in all formats
  std::string help;                             // meaning, in one sentence
  bool is_number = false;                       // aligned and sorted as a number
  std::string (*of)(const Setting&) = nullptr;  // "": not known
};

std::vector<Trait> all_traits();

// The traits that differ between settings; also `state` if a run has not finished, and `slowest` if
// a run has a slow worker.
std::vector<Trait> shown_traits(const std::vector<Setting>& settings);

}  // namespace abtrain::report
