#include "kernels/blocks/reduce_buffers.h"

#include <algorithm>

#include "kernels/elements.cuh"
#include "kernels/launch.cuh"

namespace abtrain::kernels {

namespace {

// The type in which sums of T are accumulated, and the operations on it.
template <class T>
struct Sum {
  using Type = float;
  static __device__ float widen(T x) {
    return to_float(x);
  }
  static __device__ float mean(float sum, int count) {
    return divide(sum, static_cast<float>(count));
  }
  static __device__ void narrow(T& to, float sum) {
    store(to, sum);
  }
};

template <class Integer>
struct IntegerSum {
  using Type = Integer;
  static __device__ Integer widen(Integer x) {
    return x;
  }
  static __device__ Integer mean(Integer sum, int) {
    return sum;
  }
  static __device__ void narrow(Integer& to, Integer sum) {
    to = sum;
  }
};
template <>
struct Sum<std::uint8_t> : IntegerSum<std::uint8_t> {};
template <>
struct Sum<std::int32_t> : IntegerSum<std::int32_t> {};

__device__ inline float add(float a, float b) {
  return a + b;
}
__device__ inline std::uint8_t add(std::uint8_t a, std::uint8_t b) {
  return static_cast<std::uint8_t>(a + b);
}
__device__ inline std::int32_t add(std::int32_t a, std::int32_t b) {
  // Signed overflow is undefined behavior in C++.
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

template <class T, int kVector>
__global__ void reduce_kernel(
    const BufferList in, const BufferList out, std::int64_t packets, ReduceOp op) {
  using Values = Packet<T, kVector>;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packets;
       i += stride) {
    typename Sum<T>::Type sum[kVector] = {};
    for (int b = 0; b < in.count; ++b) {
      const Values packet = static_cast<const Values*>(in.data[b])[i];
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const auto x = Sum<T>::widen(packet.values[v]);
        if (b == 0) {
          sum[v] = x;
        } else if (op != ReduceOp::Max) {
          sum[v] = add(sum[v], x);
        } else if (x > sum[v] || x != x) {
          // A NaN wins, so that the maximum shows it.
          sum[v] = x;
        }
      }
    }
    Values result;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      Sum<T>::narrow(
          result.values[v], op == ReduceOp::Mean ? Sum<T>::mean(sum[v], in.count) : sum[v]);
    }
    for (int b = 0; b < out.count; ++b) {
      static_cast<Values*>(out.data[b])[i] = result;
    }
  }
}

template <class T, int kVector>
int queue(
    const BufferList& in, const BufferList& out, std::int64_t packets, ReduceOp op, void* stream) {
  constexpr int kThreads = 256;
  constexpr std::int64_t kMaxBlocks = 2048;
  const auto blocks = std::min((packets + kThreads - 1) / kThreads, kMaxBlocks);
  return launch(reduce_kernel<T, kVector>, blocks, kThreads, 0, stream, in, out, packets, op);
}

BufferList shifted(BufferList list, std::int64_t bytes) {
  for (int b = 0; b < list.count; ++b) {
    list.data[b] = static_cast<char*>(list.data[b]) + bytes;
  }
  return list;
}

bool aligned(const BufferList& list) {
  return std::all_of(list.data, list.data + list.count, [](void* p) { return is_aligned(p, 16); });
}

// Uses 16-byte packets if every pointer is aligned, then single elements for
// the rest.
template <class T>
int reduce(
    const BufferList& in, const BufferList& out, std::int64_t numel, ReduceOp op, void* stream) {
  constexpr int kVector = 16 / sizeof(T);
  const std::int64_t packets = aligned(in) && aligned(out) ? numel / kVector : 0;
  const std::int64_t done = packets * kVector;
  const auto bytes = done * static_cast<std::int64_t>(sizeof(T));
  return first_error(
      {queue<T, kVector>(in, out, packets, op, stream),
       queue<T, 1>(shifted(in, bytes), shifted(out, bytes), numel - done, op, stream)});
}

}  // namespace

int reduce_buffers(
    const BufferList& in, const BufferList& out, std::int64_t numel, Element element, ReduceOp op,
    void* stream) {
  switch (element) {
    case Element::F32:
      return reduce<float>(in, out, numel, op, stream);
    case Element::F16:
      return reduce<__half>(in, out, numel, op, stream);
    case Element::BF16:
      return reduce<__nv_bfloat16>(in, out, numel, op, stream);
    case Element::U8:
    case Element::I32:
      if (op == ReduceOp::Mean) {
        return 1;
      }
      return element == Element::U8 ? reduce<std::uint8_t>(in, out, numel, op, stream)
                                    : reduce<std::int32_t>(in, out, numel, op, stream);
  }
  return 1;  // cudaErrorInvalidValue
}

}  // namespace abtrain::kernels
