#include "kernels/reduce_buffers.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

namespace abtrain::kernels {

namespace {

// kVector neighbouring elements in one aligned load or store.
template <class T, int kVector>
struct alignas(sizeof(T) * kVector) Packet {
  T values[kVector];
};

__device__ float to_float(float x) {
  return x;
}
__device__ float to_float(__half x) {
  return __half2float(x);
}
__device__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ void store(float& to, float x) {
  to = x;
}
__device__ void store(__half& to, float x) {
  to = __float2half_rn(x);
}
__device__ void store(__nv_bfloat16& to, float x) {
  to = __float2bfloat16_rn(x);
}

template <class T, int kVector>
__global__ void reduce_kernel(
    const BufferList in,
    const BufferList out,
    std::int64_t packets,
    Combine combine) {
  using Values = Packet<T, kVector>;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < packets;
       i += stride) {
    float sum[kVector];
    for (int b = 0; b < in.count; ++b) {
      const Values packet = static_cast<const Values*>(in.data[b])[i];
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const float x = to_float(packet.values[v]);
        if (b == 0) {
          sum[v] = x;
        } else if (combine != Combine::Max) {
          sum[v] += x;
        } else if (x > sum[v] || x != x) {
          // A NaN wins, so that a maximum shows it.
          sum[v] = x;
        }
      }
    }
    Values result;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const float x = combine == Combine::Mean
                          ? __fdiv_rn(sum[v], static_cast<float>(in.count))
                          : sum[v];
      store(result.values[v], x);
    }
    for (int b = 0; b < out.count; ++b) {
      static_cast<Values*>(out.data[b])[i] = result;
    }
  }
}

template <class T, int kVector>
void launch(
    const BufferList& in,
    const BufferList& out,
    std::int64_t packets,
    Combine combine,
    cudaStream_t stream) {
  if (packets == 0) {
    return;
  }
  constexpr int kThreads = 256;
  constexpr std::int64_t kMaxBlocks = 2048;
  const auto blocks = static_cast<unsigned>(
      std::min((packets + kThreads - 1) / kThreads, kMaxBlocks));
  reduce_kernel<T, kVector>
      <<<blocks, kThreads, 0, stream>>>(in, out, packets, combine);
}

BufferList shifted(BufferList list, std::int64_t bytes) {
  for (int b = 0; b < list.count; ++b) {
    list.data[b] = static_cast<char*>(list.data[b]) + bytes;
  }
  return list;
}

bool aligned(const BufferList& list) {
  return std::all_of(list.data, list.data + list.count, [](void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
  });
}

// 16-byte packets where every pointer allows it, then the rest one by one.
template <class T>
void reduce(
    const BufferList& in,
    const BufferList& out,
    std::int64_t numel,
    Combine combine,
    cudaStream_t stream) {
  constexpr int kVector = 16 / sizeof(T);
  const std::int64_t packets =
      aligned(in) && aligned(out) ? numel / kVector : 0;
  const std::int64_t done = packets * kVector;
  const auto bytes = done * static_cast<std::int64_t>(sizeof(T));
  launch<T, kVector>(in, out, packets, combine, stream);
  launch<T, 1>(
      shifted(in, bytes), shifted(out, bytes), numel - done, combine, stream);
}

}  // namespace

int reduce_buffers(
    const BufferList& in,
    const BufferList& out,
    std::int64_t numel,
    Element element,
    Combine combine,
    void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  switch (element) {
    case Element::F32:
      reduce<float>(in, out, numel, combine, queue);
      break;
    case Element::F16:
      reduce<__half>(in, out, numel, combine, queue);
      break;
    case Element::BF16:
      reduce<__nv_bfloat16>(in, out, numel, combine, queue);
      break;
  }
  return static_cast<int>(cudaGetLastError());
}

}  // namespace abtrain::kernels
