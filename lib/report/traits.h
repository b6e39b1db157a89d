// What a setting is, in words: its data, model, method, length and state. They
// are the same in every output format; tables show those that tell rows apart.
#pragma once

#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

struct Trait {
  std::string key;                              // "method": its name everywhere
  std::string help;                             // what it means, in one sentence
  bool is_number = false;                       // aligned and sorted as one
  std::string (*of)(const Setting&) = nullptr;  // "": not known
};

std::vector<Trait> all_traits();

// Those that differ, the state where a run has not finished, and the slowest
// worker where there is one.
std::vector<Trait> shown_traits(const std::vector<Setting>& settings);

}  // namespace abtrain::report
