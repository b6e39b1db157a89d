// Lists the points of a sweep, which are the runs that it trains.
//
// The order follows the file: first the grid, with its last key varying fastest, then the list,
// each with all seeds and without the excluded points. Indices count from 0. Throws Error(Config)
// for more than 100,000 points, LocatedError(Config) for an item of `exclude` that matches no
// point.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sweep/sweep_file.h"

namespace abtrain::sweep {

struct Point {
  std::size_t index = 0;
  // Keys and values, as in "group_size=1,keep=0.7,seed=1", with each key cut to its shortest
  // unambiguous ending. Safe as a folder name.
  std::string label;
  Choice values;
};

std::vector<Point> list_points(const Sweep& sweep);

}  // namespace abtrain::sweep
