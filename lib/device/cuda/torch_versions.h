// Differences between the versions of LibTorch that abtrain can be built with
// (ABTRAIN_TORCH_RANGE in cmake/Torch.cmake). The CPU's part of LibTorch needs none.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Generator.h>

#include <vector>

#if __has_include(<c10/cuda/CUDAEvent.h>)  // from 2.11 on
#include <c10/cuda/CUDAEvent.h>
#else
#include <ATen/cuda/CUDAEvent.h>
#endif

namespace abtrain::device {

#if __has_include(<c10/cuda/CUDAEvent.h>)
using CudaEvent = c10::cuda::CUDAEvent;
#else
using CudaEvent = at::cuda::CUDAEvent;
#endif

// Registers the generators of a step that `graph`, an at::cuda::CUDAGraph, will capture.
// From 2.14 on, generators register themselves.
template <class Graph>
void register_generators(Graph& graph, const std::vector<at::Generator>& generators) {
  if constexpr (requires { graph.register_generator_state(generators.front()); }) {
    for (const at::Generator& generator : generators) {
      graph.register_generator_state(generator);
    }
  }
}

// Ends a capture's use of a pool of host memory, and its hold on the pool. Throws if the capture
// has not begun it. Before 2.11, captures have no such pools.
template <class Allocator, class Pool>
void leave_host_pool(Allocator& host, const Pool& pool) {
  if constexpr (requires { host.end_allocate_to_pool(pool); }) {
    host.end_allocate_to_pool(pool);
    host.release_pool(pool);
  }
}

}  // namespace abtrain::device
