// Which settings a column marks, by their names.
#pragma once

#include <string>
#include <vector>

#include "report/columns.h"
#include "report/compare.h"

namespace abtrain::report {

inline std::vector<std::string> marked_by(
    const Column& column, const std::vector<Setting>& settings) {
  std::vector<std::string> names;
  const auto cells = figures(column, settings);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].is_best) {
      names.push_back(settings[i].name);
    }
  }
  return names;
}

}  // namespace abtrain::report
