#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <cstdio>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "linalg/eigen.h"

namespace abtrain::linalg {
namespace {

void check(cusolverStatus_t status, const char* call) {
  if (status != CUSOLVER_STATUS_SUCCESS) {
    throw std::runtime_error(
        str(call,
            ": cuSOLVER status ",
            static_cast<int>(status),
            ", expected 0 (success)"));
  }
}

// Memory that a call works in. What the caching allocator takes back on this
// stream is not given out before the call is done. Zeros, since
// cusolverDnXsyevBatched was seen to rely on them (cuSOLVER 11.7.1).
struct Workspace {
  at::Tensor device;
  at::Tensor host;

  Workspace(std::size_t on_device, std::size_t on_host, c10::Device where)
      : device(at::zeros(
            {static_cast<std::int64_t>(on_device)},
            at::TensorOptions(where).dtype(at::kByte))),
        host(at::empty({static_cast<std::int64_t>(on_host)}, at::kByte)) {}
};

void check_input(const at::Tensor& tensor, std::int64_t dimensions) {
  ABT_ASSERT(
      tensor.is_cuda() && tensor.scalar_type() == at::kDouble &&
          tensor.dim() == dimensions && tensor.numel() > 0,
      "wanted a float64 CUDA tensor of ",
      dimensions,
      " dimensions");
}

at::Tensor verdicts(std::int64_t count, const at::Tensor& like) {
  return at::zeros({count}, like.options().dtype(at::kInt));
}

}  // namespace

struct EigenSolver::Impl {
  c10::Device device;
  cusolverDnHandle_t handle = nullptr;
  cusolverDnParams_t params = nullptr;

  explicit Impl(c10::Device where) : device(where) {
    const c10::cuda::CUDAGuard guard(device);
    check(cusolverDnCreate(&handle), "cusolverDnCreate");
    const auto status = cusolverDnCreateParams(&params);
    if (status != CUSOLVER_STATUS_SUCCESS) {
      cusolverDnDestroy(handle);
      check(status, "cusolverDnCreateParams");
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    const c10::cuda::CUDAGuard guard(device);
    if (cusolverDnDestroyParams(params) != CUSOLVER_STATUS_SUCCESS ||
        cusolverDnDestroy(handle) != CUSOLVER_STATUS_SUCCESS) {
      std::fprintf(stderr, "warning: a cuSOLVER handle was not destroyed\n");
    }
  }

  void use_current_stream() const {
    check(
        cusolverDnSetStream(
            handle, c10::cuda::getCurrentCUDAStream(device.index()).stream()),
        "cusolverDnSetStream");
  }
};

EigenSolver::EigenSolver(c10::Device device)
    : impl_(std::make_unique<Impl>(
          device.has_index()
              ? device
              : c10::Device(c10::kCUDA, c10::cuda::current_device()))) {}
EigenSolver::~EigenSolver() = default;

// Symmetric, so that column by column and row by row are the same; eigenvectors
// replace a matrix as columns of its column-major form, which are our rows.
EigenBatch EigenSolver::each(const at::Tensor& symmetric) {
  check_input(symmetric, 3);
  const c10::cuda::CUDAGuard guard(impl_->device);
  impl_->use_current_stream();
  const auto b = symmetric.size(0);
  const auto n = symmetric.size(1);
  EigenBatch result{
      at::empty({b, n}, symmetric.options()),
      symmetric.clone(at::MemoryFormat::Contiguous),
      verdicts(b, symmetric)};
  std::size_t on_device = 0;
  std::size_t on_host = 0;
  auto* a = result.vectors.mutable_data_ptr<double>();
  auto* w = result.values.mutable_data_ptr<double>();
  check(
      cusolverDnXsyevd_bufferSize(
          impl_->handle,
          impl_->params,
          CUSOLVER_EIG_MODE_VECTOR,
          CUBLAS_FILL_MODE_LOWER,
          n,
          CUDA_R_64F,
          a,
          n,
          CUDA_R_64F,
          w,
          CUDA_R_64F,
          &on_device,
          &on_host),
      "cusolverDnXsyevd_bufferSize");
  const Workspace space(on_device, on_host, impl_->device);
  for (std::int64_t i = 0; i < b; ++i) {
    check(
        cusolverDnXsyevd(
            impl_->handle,
            impl_->params,
            CUSOLVER_EIG_MODE_VECTOR,
            CUBLAS_FILL_MODE_LOWER,
            n,
            CUDA_R_64F,
            a + i * n * n,
            n,
            CUDA_R_64F,
            w + i * n,
            CUDA_R_64F,
            space.device.mutable_data_ptr(),
            on_device,
            space.host.mutable_data_ptr(),
            on_host,
            result.info.mutable_data_ptr<int>() + i),
        "cusolverDnXsyevd");
  }
  return result;
}

EigenBatch EigenSolver::batched(const at::Tensor& symmetric) {
  check_input(symmetric, 3);
  ABT_ASSERT(
      symmetric.numel() <= std::numeric_limits<std::int32_t>::max(),
      "cusolverDnXsyevBatched counts entries in 32 bits");
  const c10::cuda::CUDAGuard guard(impl_->device);
  impl_->use_current_stream();
  const auto b = symmetric.size(0);
  const auto n = symmetric.size(1);
  EigenBatch result{
      at::empty({b, n}, symmetric.options()),
      symmetric.clone(at::MemoryFormat::Contiguous),
      verdicts(b, symmetric)};
  std::size_t on_device = 0;
  std::size_t on_host = 0;
  auto* a = result.vectors.mutable_data_ptr<double>();
  auto* w = result.values.mutable_data_ptr<double>();
  check(
      cusolverDnXsyevBatched_bufferSize(
          impl_->handle,
          impl_->params,
          CUSOLVER_EIG_MODE_VECTOR,
          CUBLAS_FILL_MODE_LOWER,
          n,
          CUDA_R_64F,
          a,
          n,
          CUDA_R_64F,
          w,
          CUDA_R_64F,
          &on_device,
          &on_host,
          b),
      "cusolverDnXsyevBatched_bufferSize");
  const Workspace space(on_device, on_host, impl_->device);
  check(
      cusolverDnXsyevBatched(
          impl_->handle,
          impl_->params,
          CUSOLVER_EIG_MODE_VECTOR,
          CUBLAS_FILL_MODE_LOWER,
          n,
          CUDA_R_64F,
          a,
          n,
          CUDA_R_64F,
          w,
          CUDA_R_64F,
          space.device.mutable_data_ptr(),
          on_device,
          space.host.mutable_data_ptr(),
          on_host,
          result.info.mutable_data_ptr<int>(),
          b),
      "cusolverDnXsyevBatched");
  return result;
}

// Column-major m x n is our contiguous n x m: a clone of the transpose, whose
// result is transposed back as a view.
DeviceSvd EigenSolver::polar(const at::Tensor& matrix) {
  check_input(matrix, 2);
  const c10::cuda::CUDAGuard guard(impl_->device);
  impl_->use_current_stream();
  const auto m = matrix.size(0);
  const auto n = matrix.size(1);
  const auto copy = matrix.t().clone(at::MemoryFormat::Contiguous);
  const auto values = at::empty({n}, matrix.options());
  const auto u = at::empty({n, m}, matrix.options());
  const auto v = at::empty({n, n}, matrix.options());
  const auto info = verdicts(1, matrix);
  std::size_t on_device = 0;
  std::size_t on_host = 0;
  check(
      cusolverDnXgesvdp_bufferSize(
          impl_->handle,
          impl_->params,
          CUSOLVER_EIG_MODE_VECTOR,
          /*econ=*/1,
          m,
          n,
          CUDA_R_64F,
          copy.const_data_ptr(),
          m,
          CUDA_R_64F,
          values.const_data_ptr(),
          CUDA_R_64F,
          u.const_data_ptr(),
          m,
          CUDA_R_64F,
          v.const_data_ptr(),
          n,
          CUDA_R_64F,
          &on_device,
          &on_host),
      "cusolverDnXgesvdp_bufferSize");
  const Workspace space(on_device, on_host, impl_->device);
  double polar_error =
      0;  // it adds a little to small values and tells how much
  check(
      cusolverDnXgesvdp(
          impl_->handle,
          impl_->params,
          CUSOLVER_EIG_MODE_VECTOR,
          /*econ=*/1,
          m,
          n,
          CUDA_R_64F,
          copy.mutable_data_ptr(),
          m,
          CUDA_R_64F,
          values.mutable_data_ptr(),
          CUDA_R_64F,
          u.mutable_data_ptr(),
          m,
          CUDA_R_64F,
          v.mutable_data_ptr(),
          n,
          CUDA_R_64F,
          space.device.mutable_data_ptr(),
          on_device,
          space.host.mutable_data_ptr(),
          on_host,
          info.mutable_data_ptr<int>(),
          &polar_error),
      "cusolverDnXgesvdp");
  return {values, u.t(), v.t(), info};
}

DeviceSvd EigenSolver::qr(const at::Tensor& matrix) {
  check_input(matrix, 2);
  ABT_ASSERT(matrix.size(0) >= matrix.size(1), "cusolverDnXgesvd wants m >= n");
  const c10::cuda::CUDAGuard guard(impl_->device);
  impl_->use_current_stream();
  const auto m = matrix.size(0);
  const auto n = matrix.size(1);
  const auto copy = matrix.t().clone(at::MemoryFormat::Contiguous);
  const auto values = at::empty({n}, matrix.options());
  const auto u = at::empty({n, m}, matrix.options());
  const auto vt = at::empty({n, n}, matrix.options());
  const auto info = verdicts(1, matrix);
  std::size_t on_device = 0;
  std::size_t on_host = 0;
  check(
      cusolverDnXgesvd_bufferSize(
          impl_->handle,
          impl_->params,
          'S',
          'S',
          m,
          n,
          CUDA_R_64F,
          copy.const_data_ptr(),
          m,
          CUDA_R_64F,
          values.const_data_ptr(),
          CUDA_R_64F,
          u.const_data_ptr(),
          m,
          CUDA_R_64F,
          vt.const_data_ptr(),
          n,
          CUDA_R_64F,
          &on_device,
          &on_host),
      "cusolverDnXgesvd_bufferSize");
  const Workspace space(on_device, on_host, impl_->device);
  check(
      cusolverDnXgesvd(
          impl_->handle,
          impl_->params,
          'S',
          'S',
          m,
          n,
          CUDA_R_64F,
          copy.mutable_data_ptr(),
          m,
          CUDA_R_64F,
          values.mutable_data_ptr(),
          CUDA_R_64F,
          u.mutable_data_ptr(),
          m,
          CUDA_R_64F,
          vt.mutable_data_ptr(),
          n,
          CUDA_R_64F,
          space.device.mutable_data_ptr(),
          on_device,
          space.host.mutable_data_ptr(),
          on_host,
          info.mutable_data_ptr<int>()),
      "cusolverDnXgesvd");
  // Column-major V^T is V row by row.
  return {values, u.t(), vt, info};
}

}  // namespace abtrain::linalg
