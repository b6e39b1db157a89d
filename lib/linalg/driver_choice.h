// Which of several ways to decompose matrices of one shape is fastest on this
// device: each is timed once, on the first matrices of that shape, and the
// fastest whose results are right is kept. Knows nothing of devices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace abtrain::linalg {

// All eigenpairs of a Gram matrix: values descending, vectors n x n, columns.
struct Eigenpairs {
  std::vector<double> values;
  at::Tensor vectors;
};

struct Driver {
  std::string name;
  std::function<std::vector<Eigenpairs>()> run;  // one result a matrix
};

// Rows of all matrices together, short side, number of matrices.
using BatchShape = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

struct TimedDriver {
  std::string name;
  double milliseconds = 0;
  std::string fault;  // why it may not be chosen; empty where it may
};

class DriverChoice {
 public:
  // Milliseconds that the device takes for what the function queues.
  using Timer = std::function<double(const std::function<void()>&)>;

  // The results of the kept driver. First time for a shape: runs every driver
  // twice (libraries load in the first call) and times the second. The first
  // driver is the yardstick: its errors are thrown; another that throws, whose
  // singular values differ by more than 1e-6 of the largest, or whose vectors
  // are not orthonormal is left out.
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
