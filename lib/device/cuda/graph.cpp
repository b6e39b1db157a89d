#include <ATen/core/grad_mode.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <exception>
#include <memory>

#include "base/text.h"
#include "device/cuda/check.h"
#include "device/cuda/torch_versions.h"
#include "device/graph.h"

namespace abtrain::device {

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

using Generators = std::vector<at::Generator>;

// Runs the body and returns its error, or null.
template <class Body>
std::exception_ptr attempt(const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

// Returns LibTorch's cached memory to the device if little is free. A capture allocates from its
// own pool, and LibTorch cannot release cached memory while a capture runs.
void release_cached_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  ABT_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  if (free < total / 4) {
    allocator::emptyCache();
  }
}

class Captured {
 public:
  Captured(
      c10::Device device, const std::function<void()>& body, const Generators& generators,
      CaptureTurn& turn, c10::MempoolId_t pool)
      : device_(device), turn_(turn), pool_(pool) {
    const c10::cuda::CUDAGuard guard(device_);
    // Other workers' streams may write the generators' state on the device, so
    // nothing that is still queued here may use that memory.
    ABT_CUDA_CHECK(cudaStreamSynchronize(stream()));
    const std::lock_guard lock(turn_);
    release_cached_memory();
    if (const std::exception_ptr error = record(body, generators)) {
      recover(generators);
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& cause) {
        throw CaptureFailed(cause.what());
      }
    }
  }

  void replay() {
    const std::lock_guard lock(turn_);
    graph_->replay();
  }

  ~Captured() {
    // As soon as the graph is destroyed, others may reuse its pool and the generators' state on the
    // device, so its replays must have ended.
    attempt([&] {
      const c10::cuda::CUDAGuard guard(device_);
      // After an error the stream may be waiting for a peer that is gone.
      if (std::uncaught_exceptions() == 0) {
        C10_CUDA_CHECK_WARN(cudaStreamSynchronize(stream()));
      }
      // Not locked earlier: the wait above may be for another worker.
      const std::lock_guard lock(turn_);
      graph_.reset();
    });
  }

 private:
  cudaStream_t stream() const {
    return c10::cuda::getCurrentCUDAStream(device_.index()).stream();
  }

  // Returns null on success.
  std::exception_ptr record(const std::function<void()>& body, const Generators& generators) {
    const std::exception_ptr before = attempt([&] {
      graph_ = std::make_unique<at::cuda::CUDAGraph>();
      register_generators(*graph_, generators);
      // With "thread local", calls that a capture does not allow fail on this thread only: the data
      // loaders' and NCCL's threads may still allocate memory and query events on streams that are
      // not being captured. LibTorch's backward pass runs on its own thread but on the stream of
      // the forward pass, so it is captured as well.
      graph_->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    });
    if (before) {
      return before;
    }
    const std::exception_ptr within = attempt(body);
    const std::exception_ptr after = attempt([&] { graph_->capture_end(); });
    return within ? within : after;
  }

  // Cleans up what LibTorch 2.11 leaves behind when a capture fails: the stream
  // and both allocators may still be in capture mode, and the generators still
  // wait for the end of the capture.
  void recover(const Generators& generators) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream(), &status) == cudaSuccess &&
        status != cudaStreamCaptureStatusNone) {
      cudaGraph_t part = nullptr;
      static_cast<void>(cudaStreamEndCapture(stream(), &part));
      if (part != nullptr) {
        static_cast<void>(cudaGraphDestroy(part));
      }
    }
    // pool() throws unless the capture has ended; then the graph releases its pool itself.
    if (attempt([&] { static_cast<void>(graph_->pool()); })) {
      // Each allocator ends only what the capture has begun: the pool may be shared.
      at::HostAllocator& host = *at::getHostAllocator(at::kCUDA);
      if (!attempt([&] { allocator::endAllocateToPool(device_.index(), pool_); })) {
        attempt([&] { allocator::releasePool(device_.index(), pool_); });
      }
      attempt([&] { leave_host_pool(host, pool_); });
    }
    graph_.reset();
    static_cast<void>(cudaGetLastError());
    // Only a capture that ends successfully resets the generators, so make a small one here.
    const at::NoGradGuard no_grad;
    const at::Tensor nothing = at::zeros({1}, at::TensorOptions(device_));
    graph_ = std::make_unique<at::cuda::CUDAGraph>();
    register_generators(*graph_, generators);
    graph_->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    nothing.zero_();
    graph_->capture_end();
    graph_.reset();
  }

  c10::Device device_;
  CaptureTurn& turn_;
  c10::MempoolId_t pool_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

}  // namespace

Graph Graph::capture(
    c10::Device device, const std::function<void()>& body,
    const std::vector<at::Generator>& generators, CaptureTurn& turn, const Graph& before) {
  Graph graph;
  graph.replay_ = body;
  if (device.is_cuda()) {
    graph.memory_ = before ? before.memory_ : at::cuda::graph_pool_handle();
    graph.replay_ = [captured = std::make_shared<Captured>(
                         device, body, generators, turn, graph.memory_)] { captured->replay(); };
  }
  return graph;
}

}  // namespace abtrain::device
