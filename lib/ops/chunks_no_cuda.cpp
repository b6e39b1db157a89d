#include "base/error.h"
#include "ops/chunks_backends.h"

namespace abtrain::ops {

namespace {

[[noreturn]] void refuse(const char* name) {
  throw std::logic_error(
      str(name, ": CUDA tensors in a build with ABTRAIN_CUDA=OFF"));
}

}  // namespace

void add_with_norms_cuda(
    const at::Tensor&,
    const at::Tensor&,
    bool,
    std::int64_t,
    const at::Tensor&) {
  refuse("add_with_norms");
}

void take_chunks_cuda(
    const at::Tensor&,
    const at::Tensor&,
    std::int64_t,
    int,
    const at::Tensor&) {
  refuse("take_chunks");
}

void put_chunks_cuda(
    const at::Tensor&,
    const at::Tensor&,
    std::int64_t,
    const at::Tensor&,
    Put) {
  refuse("put_chunks");
}

}  // namespace abtrain::ops
