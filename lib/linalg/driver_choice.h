// Chooses which of several drivers decomposes matrices of one shape fastest on
// this device: each is timed once, on the first matrices of that shape, and the
// fastest whose results are right is kept. Independent of the kind of device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace abtrain::linalg {

// All eigenpairs of a Gram matrix: values descending, vectors n x n, as
// columns.
struct Eigenpairs {
  std::vector<double> values;
  at::Tensor vectors;
};

struct Driver {
  std::string name;
  std::function<std::vector<Eigenpairs>()> run;  // one result per matrix
};

// The total number of rows of all matrices, their short side, their number.
using BatchShape = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

struct TimedDriver {
  std::string name;
  double milliseconds = 0;
  std::string fault;  // why it may not be chosen; empty if it may
};

class DriverChoice {
 public:
  // Returns the milliseconds that the device takes for the work that the
  // function queues.
  using Timer = std::function<double(const std::function<void()>&)>;

  // Returns the results of the kept driver. The first time for a shape it runs
  // every driver twice (libraries load in the first call) and times the second
  // run. The first driver is the reference: its errors are thrown. Any other
  // driver is left out if it throws, if its singular values differ by more than
  // 1e-6 of the largest, or if its vectors are not orthonormal.
  std::vector<Eigenpairs> run(
      const BatchShape& shape,
      const std::vector<Driver>& drivers,
      const Timer& timer);

  struct Choice {
    std::string kept;
    std::vector<TimedDriver> tried;
  };
  const std::map<BatchShape, Choice>& choices() const {
    return choices_;
  }

 private:
  std::map<BatchShape, Choice> choices_;
};

}  // namespace abtrain::linalg
