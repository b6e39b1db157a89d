#include <stdexcept>

#include "linalg/eigen.h"

namespace abtrain::linalg {

namespace {
[[noreturn]] void absent() {
  throw std::runtime_error(
      "cuSOLVER: this build was made with ABTRAIN_CUDA=OFF");
}
}  // namespace

struct EigenSolver::Impl {};
EigenSolver::EigenSolver(c10::Device) {
  absent();
}
EigenSolver::~EigenSolver() = default;
EigenBatch EigenSolver::each(const at::Tensor&) {
  absent();
}
EigenBatch EigenSolver::batched(const at::Tensor&) {
  absent();
}
DeviceSvd EigenSolver::polar(const at::Tensor&) {
  absent();
}
DeviceSvd EigenSolver::qr(const at::Tensor&) {
  absent();
}

}  // namespace abtrain::linalg
