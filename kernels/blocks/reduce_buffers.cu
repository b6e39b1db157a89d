#include "kernels/blocks/reduce_buffers.h"

#include <algorithm>

#include "kernels/elements.cuh"
#include "kernels/launch.cuh"

namespace abtrain::kernels {

namespace {

template <class T>
__device__ Wide<T> widen(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return to_float(x);
  }
}

// For integers, `op` is never Mean.
template <class T>
__device__ void store_result(T& to, Wide<T> sum, ReduceOp op, int count) {
  if constexpr (std::is_integral_v<T>) {
    to = sum;
  } else {
    store(to, op == ReduceOp::Mean ? divide(sum, static_cast<float>(count)) : sum);
  }
}

template <class T, int kVector>
__global__ void reduce_kernel(
    const BufferList in, const BufferList out, std::int64_t packets, ReduceOp op) {
  using Values = Packet<T, kVector>;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packets;
       i += stride) {
    Wide<T> sum[kVector] = {};
    for (int b = 0; b < in.count; ++b) {
      const Values packet = static_cast<const Values*>(in.data[b])[i];
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const Wide<T> x = widen(packet.values[v]);
        sum[v] = b == 0 ? x : op == ReduceOp::Max ? larger(sum[v], x) : plus(sum[v], x);
      }
    }
    Values result;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      store_result(result.values[v], sum[v], op, in.count);
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
      return op == ReduceOp::Mean ? 1 : reduce<std::uint8_t>(in, out, numel, op, stream);
    case Element::I32:
      return op == ReduceOp::Mean ? 1 : reduce<std::int32_t>(in, out, numel, op, stream);
  }
  return 1;  // cudaErrorInvalidValue
}

}  // namespace abtrain::kernels
