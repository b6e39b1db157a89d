// The exact route on a GPU, by the fastest of cuSOLVER's drivers for each
// shape:
//   gram+syevd         one Gram matrix each, decomposed one after another
//   gram+syev-batched  all Gram matrices in one call
//   gesvdp             the matrices themselves, by polar decomposition
// On any other device there is no choice to make, and this class is not needed.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "linalg/driver_choice.h"
#include "linalg/gram.h"

namespace abtrain::linalg {

class EigenSolver;

class ExactDrivers {
 public:
  // device: CUDA. The library is not touched before the first call.
  explicit ExactDrivers(c10::Device device);
  ~ExactDrivers();
  ExactDrivers(const ExactDrivers&) = delete;
  ExactDrivers& operator=(const ExactDrivers&) = delete;

  // matrices: m_i x n, with the same n and m_i >= n, finite; scales:
  // gram_scale() of each. Returns the eigenpairs of the Gram matrices of
  // (scale_i W_i). Reads the values from the device once. `what` names the
  // matrices in errors.
  std::vector<Eigenpairs> decompose(
      const std::vector<at::Tensor>& matrices,
      const std::vector<double>& scales,
      const std::string& what);

  // What was tried and what was kept, for reports.
  const std::map<BatchShape, DriverChoice::Choice>& choices() const {
    return choice_.choices();
  }
  EigenSolver& solver();

 private:
  c10::Device device_;
  std::unique_ptr<EigenSolver> solver_;
  DriverChoice choice_;
};

}  // namespace abtrain::linalg
