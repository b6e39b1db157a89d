// The points of a sweep: which there are, and in which order.
//
// The order is that of the file: the grid with its last key fastest, then the
// list, each with all seeds, without what is excluded. Indices count from 0.
// Error(Config) for more than 100,000; LocatedError(Config) for an item of
// `exclude` that describes none of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sweep/sweep_file.h"

namespace abtrain::sweep {

struct Point {
  std::size_t index = 0;
  // Its values after the shortest ends of their keys that tell them apart:
  // "group_size=1,keep=0.7,seed=1". Fit for the name of a folder.
  std::string label;
  Choice values;
};

std::vector<Point> list_points(const Sweep& sweep);

}  // namespace abtrain::sweep
