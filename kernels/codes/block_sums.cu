// Implements the norms and sums that kernels/codes/quantize.h declares.
#include <algorithm>

#include "kernels/blocks/hadamard.h"
#include "kernels/code_blocks.cuh"
#include "kernels/codes/quantize.h"

namespace abtrain::kernels {

namespace {

__device__ float norm_of(float squares) {
  const float norm = ::sqrtf(squares);
  return norm == norm ? norm : float_of(0x7F800000u);
}

// 32 threads process a block of elements with 128 lanes, four per thread. Lane i sums the squares
// of elements i, i + 128, ...; then the upper half of the lanes is added to the lower half until
// one is left. `squared`: writes sums of squares in place of norms.
__global__ void __launch_bounds__(kThreads)
    norms_kernel(const BlockNorms job, bool wide, bool squared) {
  using Four = Packet<float, 4>;
  auto* const shared = reinterpret_cast<Four*>(shared_memory());
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t block = std::int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  float sum[4] = {};
  if (block < job.blocks) {
    const std::int64_t end = (block + 1) << job.log_size;
    for (std::int64_t i = (block << job.log_size) + 4 * lane; i < end; i += kUnit) {
      float values[4];
      load_first(job.x + i, job.numel - i, wide, values);
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        sum[v] = ::fmaf(values[v], values[v], sum[v]);
      }
    }
  }
  Four* const own = shared + threadIdx.x;
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    *own = Four{{sum[0], sum[1], sum[2], sum[3]}};
    __syncthreads();
    if (lane < half) {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        sum[v] += own[half].values[v];
      }
    }
    __syncthreads();
  }
  if (lane == 0 && block < job.blocks) {
    const float squares = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    job.norms[block] = squared ? squares : norm_of(squares);
  }
}

// Computes the norm of a block from the sums of squares of its tiles.
__global__ void __launch_bounds__(kTensorLanes) norm_of_tiles_kernel(const BlockNorms job) {
  auto* const tree = reinterpret_cast<float*>(shared_memory());
  const std::int64_t tiles = std::int64_t{1} << (job.log_size - kTileLog);
  const float* const own = job.tiles + blockIdx.x * tiles;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < tiles; i += kTensorLanes) {
    sum += own[i];
  }
  tree[threadIdx.x] = sum;
  combine_by_halves(kTensorLanes, [=](int to, int from) { tree[to] += tree[from]; });
  if (threadIdx.x == 0) {
    job.norms[blockIdx.x] = norm_of(tree[0]);
  }
}

// For blocks of fewer than 128 elements: one thread per block.
__global__ void small_norms_kernel(const BlockNorms job) {
  const std::int64_t block = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (block >= job.blocks) {
    return;
  }
  float sum[kUnit];
  const int size = 1 << job.log_size;
  for (int i = 0; i < size; ++i) {
    const std::int64_t place = (block << job.log_size) + i;
    const float value = place < job.numel ? job.x[place] : 0.0f;
    sum[i] = value * value;
  }
  for (int half = size / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      sum[i] += sum[i + half];
    }
  }
  job.norms[block] = norm_of(sum[0]);
}

__device__ std::uint32_t clamped(std::uint32_t sum, int offset, int& count) {
  const int k = static_cast<int>(sum) - offset;
  const int within = k < -7 ? -7 : k > 7 ? 7 : k;
  count += k != within ? 1 : 0;
  return static_cast<std::uint32_t>(within + 8);
}

// Returns the sum of `own` over the kThreads threads of a thread block. All threads must call it.
__device__ std::uint32_t sum_of_block(std::uint32_t own) {
  auto* const counts = reinterpret_cast<std::uint32_t*>(shared_memory());
  counts[threadIdx.x] = own;
  combine_by_halves(kThreads, [=](int to, int from) { counts[to] += counts[from]; });
  return counts[0];
}

// Accumulates sums in 16-bit fields, two per 32-bit word: sums[w][s] holds the sums of codes s and
// s + 4 of the eight codes of word w. A thread processes 16 bytes at a time.
__global__ void __launch_bounds__(kThreads) sum_codes_kernel(const SumCodes job) {
  using Four = Packet<std::uint32_t, 4>;
  const std::int64_t packets = job.bytes / 16;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  const auto* const in = reinterpret_cast<const Four*>(job.in);
  const int offset = 8 * job.members;
  int count = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packets;
       i += stride) {
    std::uint32_t sums[4][4] = {};
    for (int member = 0; member < job.members; ++member) {
      const Four four = in[member * packets + i];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
#pragma unroll
        for (int s = 0; s < 4; ++s) {
          sums[w][s] += four.values[w] >> (4 * s) & 0x000F000Fu;
        }
      }
    }
    Four result;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      std::uint32_t word = 0;
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        word |= clamped(sums[w][s] & 65535u, offset, count) << (4 * s);
        word |= clamped(sums[w][s] >> 16, offset, count) << (4 * s + 16);
      }
      result.values[w] = word;
    }
    reinterpret_cast<Four*>(job.out)[i] = result;
  }
  const std::uint32_t sum = sum_of_block(static_cast<std::uint32_t>(count));
  if (threadIdx.x == 0) {
    job.partial[blockIdx.x] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) tail_kernel(const SumCodes job, int partials) {
  std::uint32_t count = 0;
  for (int i = static_cast<int>(threadIdx.x); i < partials; i += kThreads) {
    count += job.partial[i];
  }
  count = sum_of_block(count);
  if (threadIdx.x == 0) {
    *reinterpret_cast<Packet<std::uint32_t, 4>*>(job.out + job.bytes) =
        Packet<std::uint32_t, 4>{{count, 0, 0, 0}};
  }
}

__global__ void scale_kernel(const UpdateScale job) {
  update(job);
}

}  // namespace

int block_norms(const BlockNorms& job, void* stream) {
  if (std::int64_t{1} << job.log_size < kUnit) {
    return launch(small_norms_kernel, (job.blocks + 63) / 64, 64, 0, stream, job);
  }
  const auto of_blocks = [&](const BlockNorms& each, bool squared) {
    return launch(
        norms_kernel, (each.blocks + kThreads / 32 - 1) / (kThreads / 32), kThreads,
        kThreads * 4 * sizeof(float), stream, each, is_aligned(each.x, 16), squared);
  };
  if (job.log_size <= kTileLog) {
    return of_blocks(job, false);
  }
  BlockNorms tiles = job;
  tiles.blocks <<= job.log_size - kTileLog;
  tiles.log_size = kTileLog;
  tiles.norms = job.tiles;
  return first_error(
      {of_blocks(tiles, true), launch(
                                   norm_of_tiles_kernel, job.blocks, kTensorLanes,
                                   kTensorLanes * sizeof(float), stream, job)});
}

int sum_codes(const SumCodes& job, void* stream) {
  const std::int64_t blocks =
      std::clamp<std::int64_t>((job.bytes / 16 + kThreads - 1) / kThreads, 1, kPartials);
  constexpr std::size_t kBytes = kThreads * sizeof(std::uint32_t);
  return first_error(
      {launch(sum_codes_kernel, blocks, kThreads, kBytes, stream, job),
       launch(tail_kernel, 1, kThreads, kBytes, stream, job, static_cast<int>(blocks))});
}

int update_scale(const UpdateScale& job, void* stream) {
  return launch(scale_kernel, 1, 1, 0, stream, job);
}

}  // namespace abtrain::kernels
