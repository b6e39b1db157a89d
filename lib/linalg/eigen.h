// cuSOLVER's dense decompositions in float64, on the current stream. Results
// stay on the device together with the library's status (`info`): one
// read_back() copies the values of many calls to the host and checks them all.
// In a build without CUDA the constructor throws.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace abtrain::linalg {

// The eigenpairs of b symmetric n x n matrices.
struct EigenBatch {
  at::Tensor values;   // b x n, ascending
  at::Tensor vectors;  // b x n x n: row i of a matrix belongs to value i
  at::Tensor info;     // b, int32: 0 on success
};

// The thin decomposition of one matrix: u is m x n, v is n x n, vectors are
// columns, values descend.
struct DeviceSvd {
  at::Tensor values;  // n
  at::Tensor u;
  at::Tensor v;
  at::Tensor info;  // 1, int32
};

// Owns a cuSOLVER handle. For one thread at a time, on one device.
class EigenSolver {
 public:
  explicit EigenSolver(c10::Device device);
  ~EigenSolver();
  EigenSolver(const EigenSolver&) = delete;
  EigenSolver& operator=(const EigenSolver&) = delete;

  // symmetric: b x n x n, float64, CUDA; not modified. One matrix after another
  // (cusolverDnXsyevd), or all in one call (cusolverDnXsyevBatched).
  EigenBatch each(const at::Tensor& symmetric);
  EigenBatch batched(const at::Tensor& symmetric);
  // matrix: m x n, m >= n, float64, CUDA; not modified. By polar decomposition
  // (cusolverDnXgesvdp) or by QR iterations (cusolverDnXgesvd).
  DeviceSvd polar(const at::Tensor& matrix);
  DeviceSvd qr(const at::Tensor& matrix);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A result that is still on the device: `values` b x n or n, `info` b.
struct Pending {
  at::Tensor values;
  at::Tensor info;
  std::string what;  // for messages: the layer or layers
};

// Copies all results from the device at once and returns the values of each, b
// * n. Throws Error(Diverged) naming `what` if a driver did not converge.
std::vector<std::vector<double>> read_back(const std::vector<Pending>& pending);

}  // namespace abtrain::linalg
