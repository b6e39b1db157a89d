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
    throw std::runtime_error(formatted(
        "{}: cuSOLVER status {}, expected 0 (success)",
        call,
        static_cast<int>(status)));
  }
}

// Scratch for calls on problems of one shape. The caching allocator does not
// reuse what is freed on this stream before these calls are done. Filled with
// zeros, since cusolverDnXsyevBatched was seen to rely on them (cuSOLVER
// 11.7.1).
class Workspace {
 public:
  // call(function, arguments...) passes the problem and then these arguments to
  // `function`.
  template <class Call, class Query>
  Workspace(
      const Call& call,
      const Query& query,
      const char* name,
      c10::Device where) {
    check(call(query, &on_device_, &on_host_), name);
    device_ = at::zeros(
        {static_cast<std::int64_t>(on_device_)},
        at::TensorOptions(where).dtype(at::kByte));
    host_ = at::empty({static_cast<std::int64_t>(on_host_)}, at::kByte);
  }
  template <class Call, class Function, class... Last>
  void run(
      const Call& call,
      const Function& function,
      const char* name,
      Last... last) const {
    check(
        call(
            function,
            device_.mutable_data_ptr(),
            on_device_,
            host_.mutable_data_ptr(),
            on_host_,
            last...),
        name);
  }

 private:
  std::size_t on_device_ = 0;
  std::size_t on_host_ = 0;
  at::Tensor device_, host_;
};

void check_input(const at::Tensor& tensor, std::int64_t dimensions) {
  ABT_ASSERT(
      tensor.is_cuda() && tensor.scalar_type() == at::kDouble &&
          tensor.dim() == dimensions && tensor.numel() > 0,
      "expected a float64 CUDA tensor of {} dimensions",
      dimensions);
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

namespace {

// A library call on symmetric n x n matrices; the query for the scratch size
// and the call itself differ in their last arguments only.
template <class Function, class... Rest>
cusolverStatus_t eigen_call(
    const Function& function,
    cusolverDnHandle_t handle,
    cusolverDnParams_t params,
    std::int64_t n,
    double* matrices,
    double* values,
    Rest... rest) {
  return function(
      handle,
      params,
      CUSOLVER_EIG_MODE_VECTOR,
      CUBLAS_FILL_MODE_LOWER,
      n,
      CUDA_R_64F,
      matrices,
      n,
      CUDA_R_64F,
      values,
      CUDA_R_64F,
      rest...);
}

// The same for a singular value decomposition. A column-major m x n matrix is
// our contiguous n x m: a clone of the transpose, whose result is transposed
// back as a view.
struct SvdProblem {
  std::int64_t m, n;
  at::Tensor matrix;  // overwritten
  at::Tensor values, u, v;

  explicit SvdProblem(const at::Tensor& of)
      : m(of.size(0)),
        n(of.size(1)),
        matrix(of.t().clone(at::MemoryFormat::Contiguous)),
        values(at::empty({n}, of.options())),
        u(at::empty({n, m}, of.options())),
        v(at::empty({n, n}, of.options())) {}

  template <class Function, class Option, class Last, class... Rest>
  cusolverStatus_t call(
      const Function& function,
      cusolverDnHandle_t handle,
      cusolverDnParams_t params,
      Option option,
      Last last,
      Rest... rest) const {
    return function(
        handle,
        params,
        option,
        last,
        m,
        n,
        CUDA_R_64F,
        matrix.mutable_data_ptr(),
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
        rest...);
  }
};

EigenBatch empty_batch(const at::Tensor& symmetric) {
  return {
      at::empty({symmetric.size(0), symmetric.size(1)}, symmetric.options()),
      symmetric.clone(at::MemoryFormat::Contiguous),
      verdicts(symmetric.size(0), symmetric)};
}

}  // namespace

EigenSolver::EigenSolver(c10::Device device)
    : impl_(std::make_unique<Impl>(
          device.has_index()
              ? device
              : c10::Device(c10::kCUDA, c10::cuda::current_device()))) {}
EigenSolver::~EigenSolver() = default;

// Column-major and row-major are the same for symmetric matrices; eigenvectors
// replace a matrix as the columns of its column-major form, which are our rows.
EigenBatch EigenSolver::each(const at::Tensor& symmetric) {
  check_input(symmetric, 3);
  const c10::cuda::CUDAGuard guard(impl_->device);
  impl_->use_current_stream();
  const auto n = symmetric.size(1);
  EigenBatch result = empty_batch(symmetric);
  auto* matrix = result.vectors.mutable_data_ptr<double>();
  auto* values = result.values.mutable_data_ptr<double>();
  auto* info = result.info.mutable_data_ptr<int>();
  const auto call = [&](const auto& function, auto... rest) {
    return eigen_call(
        function, impl_->handle, impl_->params, n, matrix, values, rest...);
  };
  const Workspace space(
      call,
      cusolverDnXsyevd_bufferSize,
      "cusolverDnXsyevd_bufferSize",
      impl_->device);
  for (std::int64_t i = 0; i < symmetric.size(0); ++i) {
    space.run(call, cusolverDnXsyevd, "cusolverDnXsyevd", info++);
    matrix += n * n;
    values += n;
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
  EigenBatch result = empty_batch(symmetric);
  const auto call = [&](const auto& function, auto... rest) {
    return eigen_call(
        function,
        impl_->handle,
        impl_->params,
        symmetric.size(1),
        result.vectors.mutable_data_ptr<double>(),
        result.values.mutable_data_ptr<double>(),
        rest...,
        symmetric.size(0));
  };
  const Workspace space(
      call,
      cusolverDnXsyevBatched_bufferSize,
      "cusolverDnXsyevBatched_bufferSize",
      impl_->device);
  space.run(
      call,
      cusolverDnXsyevBatched,
      "cusolverDnXsyevBatched",
      result.info.mutable_data_ptr<int>());
  return result;
}

DeviceSvd EigenSolver::polar(const at::Tensor& matrix) {
  check_input(matrix, 2);
  const c10::cuda::CUDAGuard guard(impl_->device);
  impl_->use_current_stream();
  const SvdProblem problem(matrix);
  const auto info = verdicts(1, matrix);
  const auto call = [&](const auto& function, auto... rest) {
    return problem.call(
        function,
        impl_->handle,
        impl_->params,
        CUSOLVER_EIG_MODE_VECTOR,
        /*econ=*/1,
        rest...);
  };
  const Workspace space(
      call,
      cusolverDnXgesvdp_bufferSize,
      "cusolverDnXgesvdp_bufferSize",
      impl_->device);
  // The driver perturbs small values a little and reports by how much.
  double polar_error = 0;
  space.run(
      call,
      cusolverDnXgesvdp,
      "cusolverDnXgesvdp",
      info.mutable_data_ptr<int>(),
      &polar_error);
  return {problem.values, problem.u.t(), problem.v.t(), info};
}

DeviceSvd EigenSolver::qr(const at::Tensor& matrix) {
  check_input(matrix, 2);
  ABT_ASSERT(matrix.size(0) >= matrix.size(1), "cusolverDnXgesvd needs m >= n");
  const c10::cuda::CUDAGuard guard(impl_->device);
  impl_->use_current_stream();
  const SvdProblem problem(matrix);
  const auto info = verdicts(1, matrix);
  const auto call = [&](const auto& function, auto... rest) {
    constexpr signed char kThin = 'S';
    return problem.call(
        function, impl_->handle, impl_->params, kThin, kThin, rest...);
  };
  const Workspace space(
      call,
      cusolverDnXgesvd_bufferSize,
      "cusolverDnXgesvd_bufferSize",
      impl_->device);
  space.run(
      call, cusolverDnXgesvd, "cusolverDnXgesvd", info.mutable_data_ptr<int>());
  // Column-major V^T is V row by row.
  return {problem.values, problem.u.t(), problem.v, info};
}

}  // namespace abtrain::linalg
