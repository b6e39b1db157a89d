// The exact route on a GPU, by the fastest of cuSOLVER's drivers for each
// shape:
//   gram+syevd         a Gram matrix each, decomposed one after the other
//   gram+syev-batched  all Gram matrices in one call
//   gesvdp             the matrices themselves, by polar decomposition
// On any other device there is nothing to choose, and no such object is needed.
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
  // device: CUDA. Nothing of the library is touched before the first call.
  explicit ExactDrivers(c10::Device device);
  ~ExactDrivers();
  ExactDrivers(const ExactDrivers&) = delete;
  ExactDrivers& operator=(const ExactDrivers&) = delete;

  // m_i x n each, one n, m_i >= n, finite, scale_i = gram_scale():
  // eigenpairs of the Gram matrix of (scale_i W_i). One read of values. `what`
  // names the matrices in errors.
  std::vector<Eigenpairs> decompose(
      const std::vector<at::Tensor>& matrices,
      const std::vector<double>& scales,
      const std::string& what);

  // What was tried and kept, for reports.
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
