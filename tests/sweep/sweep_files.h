// A sweep file in a folder of its own, read; and what is wrong with it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "error_of.h"
#include "sweep/resolve_points.h"
#include "temp_folder.h"

namespace abtrain::sweep::testing {

class SweepFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.add("configs/base.yaml", "workers: 4\nmethod: {name: ab}\n");
  }

  Sweep read(const std::string& text, SweepArgs args = {}) const {
    args.file = folder_.add("some.yaml", text);
    return read_sweep(args, {folder_ / "configs"});
  }
  std::vector<Point> points(const std::string& text) const {
    return list_points(read("base: base\n" + text));
  }
  std::vector<std::string> labels(const std::string& text) const {
    std::vector<std::string> out;
    for (const Point& point : points(text)) {
      EXPECT_EQ(point.index, out.size());
      out.push_back(point.label);
    }
    return out;
  }
  std::vector<PointRun> runs(const Sweep& sweep) const {
    return resolve_all(sweep);
  }
  // Of reading it, listing its points, or resolving them.
  std::string fault_of(const std::string& text, ErrorKind kind = ErrorKind::Config) const {
    return expect_error([&] { runs(read(text)); }, kind);
  }

  const TempFolder folder_;
};

}  // namespace abtrain::sweep::testing
