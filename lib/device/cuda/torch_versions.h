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

// Registers generators from which a step draws that `graph`, an at::cuda::CUDAGraph, will capture.
// From 2.14 on, generators register themselves.
template <class Graph>
void register_generators(Graph& graph, const std::vector<at::Generator>& generators) {
  if constexpr (requires { graph.register_generator_state(generators.front()); }) {
    for (const at::Generator& generator : generators) {
      graph.register_generator_state(generator);
    }
  }
}

// End a capture's use of a pool of host memory, and its hold on the pool. Before 2.11, captures
// have no such pools.
template <class Allocator, class Pool>
void end_host_pool(Allocator& host, const Pool& pool) {
  if constexpr (requires { host.end_allocate_to_pool(pool); }) {
    host.end_allocate_to_pool(pool);
  }
}
template <class Allocator, class Pool>
void release_host_pool(Allocator& host, const Pool& pool) {
  if constexpr (requires { host.release_pool(pool); }) {
    host.release_pool(pool);
  }
}

}  // namespace abtrain::device
