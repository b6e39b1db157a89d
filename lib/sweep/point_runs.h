// The runs of a sweep's points: configuration and folder of each.
//
// The folder is <output>/<sweep>/<label>-<hash>, the hash that of the whole
// configuration but name and output: another sweep file that comes to the same
// has the same run, a changed configuration has another.
//
// Errors: LocatedError(Config) with all that is wrong with any of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/run_options.h"
#include "sweep/points.h"

namespace abtrain::sweep {

// Its run, as `abtrain train` does it.
struct PointRun {
  std::size_t index = 0;
  std::string label;
  config::RunOptions options;
  std::string folder;
};

// Reads the configuration of one. `folders`: where `extends` is looked up.
PointRun resolve(
    const Sweep& sweep,
    const Point& point,
    const std::vector<std::string>& folders);

// All of them, each checked for itself: the same fault of several points is
// reported once. Two of the same configuration are a fault too.
std::vector<PointRun> resolve_all(
    const Sweep& sweep,
    const std::vector<Point>& points,
    const std::vector<std::string>& folders);

// The configuration but name and output, as YAML: the same for the same run.
std::string content_of(config::RunOptions options);

// What only the shape of the data can tell, as `abtrain train` checks it before
// its first step; `here`: they run on this machine, whose memory counts.
// Throws MissingInput where a folder of images is not there.
void check_runs(
    const Sweep& sweep,
    const std::vector<PointRun>& runs,
    bool here);

}  // namespace abtrain::sweep
