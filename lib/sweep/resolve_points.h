// The runs of a sweep's points: the configuration and the folder of each.
//
// The folder is <output>/<sweep>/<label>-<hash>, with a hash of the whole
// configuration except name and output. Two sweep files that lead to the same
// configuration therefore share its run, and a changed configuration gets
// another folder.
//
// Throws one LocatedError with all problems of all points, of the kind of the first problem: Config
// unless stated otherwise below.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/run_options.h"
#include "sweep/points.h"

namespace abtrain::sweep {

// A point's run, as `abtrain train` would carry it out.
struct PointRun {
  std::size_t index = 0;
  std::string label;
  config::RunOptions options;
  std::string folder;
  // A sentence for each value that was changed to fit the length of the run.
  std::vector<std::string> notes = {};
};

PointRun resolve(const Sweep& sweep, const Point& point);

// Reads the configurations of all points and checks each by itself. A fault
// that several points share is reported once. Two points with the same
// configuration are a fault too.
std::vector<PointRun> resolve_all(const Sweep& sweep);

// The configuration without name and output, as YAML.
std::string content_of(config::RunOptions options);

// Checks that the run folders can be created, and makes the checks of `abtrain train` that need the
// shape of the data. `here`: the runs train on this machine, so its memory is checked too. Throws
// MissingInput if an image folder does not exist.
void check_runs(const Sweep& sweep, const std::vector<PointRun>& runs, bool here);

}  // namespace abtrain::sweep
