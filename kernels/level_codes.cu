#include "kernels/level_codes.h"

#include "kernels/code_blocks.cuh"
#include "kernels/random.h"

namespace abtrain::kernels {

namespace {

constexpr int kTensorLanes = 256;
constexpr float kLargestFloat = 3.402823466e+38f;

__global__ void __launch_bounds__(kThreads) block_survivors(const Survivors job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const float* const u = job.u + block.begin;
  const bool wide = is_wide(u);
  const float cut = job.cuts[block.slot];
  const auto t = static_cast<int>(threadIdx.x);
  float x[kRounds][kEight];
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int i = (r * kThreads + t) * kEight;
    load_eight(u + i, block.count - i, wide, x[r]);
  }
  auto* const sizes = reinterpret_cast<float*>(shared_memory());
  float* const counts = sizes + kLanes;
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    float size = 0;
    float count = 0;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      // A cut that is below zero does not count what is not there.
      const bool there = (r * kThreads + t) * kEight + k < block.count;
      const float magnitude = ::fabsf(x[r][k]);
      const bool survives = there && magnitude > cut;
      size += survives ? magnitude : 0.0f;
      count += survives ? 1.0f : 0.0f;
    }
    sizes[kEight * t + k] = size;
    counts[kEight * t + k] = count;
  }
  add_by_halves(sizes, kLanes, counts, kLanes);
  if (t == 0) {
    job.parts[2 * blockIdx.x] = sizes[0];
    job.parts[2 * blockIdx.x + 1] = counts[0];
  }
}

__global__ void __launch_bounds__(kTensorLanes)
    tensor_survivors(const Survivors job) {
  const auto t = static_cast<int>(threadIdx.x);
  auto* const sizes = reinterpret_cast<float*>(shared_memory());
  float* const counts = sizes + kTensorLanes;
  float size = 0;
  float count = 0;
  for (std::int64_t b = job.firsts[blockIdx.x] + t;
       b < job.firsts[blockIdx.x + 1];
       b += kTensorLanes) {
    size += job.parts[2 * b];
    count += job.parts[2 * b + 1];
  }
  sizes[t] = size;
  counts[t] = count;
  add_by_halves(sizes, kTensorLanes, counts, kTensorLanes);
  if (t == 0) {
    // A cut that is not finite has no survivors, and must show.
    job.sums[2 * blockIdx.x] =
        counts[0] > 0 ? sizes[0] : job.cuts[blockIdx.x] * 0.0f;
    job.sums[2 * blockIdx.x + 1] = counts[0];
  }
}

__device__ float larger(float a, float b) {
  return b > a || b != b ? b : a;
}

// The largest of so many lanes, in the first one. All threads call it.
__device__ void keep_largest(float* lanes, int count) {
  __syncthreads();
  for (int half = count / 2; half > 0; half /= 2) {
    for (int i = static_cast<int>(threadIdx.x); i < half;
         i += static_cast<int>(blockDim.x)) {
      lanes[i] = larger(lanes[i], lanes[i + half]);
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads) block_largest(const Largest job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const float* const u = job.u + block.begin;
  const bool wide = is_wide(u);
  const auto t = static_cast<int>(threadIdx.x);
  float most = 0;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int i = (r * kThreads + t) * kEight;
    float x[kEight];
    load_eight(u + i, block.count - i, wide, x);
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      most = larger(most, ::fabsf(x[k]));
    }
  }
  auto* const lanes = reinterpret_cast<float*>(shared_memory());
  lanes[t] = most;
  keep_largest(lanes, kThreads);
  if (t == 0) {
    job.parts[blockIdx.x] = lanes[0];
  }
}

__global__ void __launch_bounds__(kTensorLanes)
    tensor_largest(const Largest job) {
  const auto t = static_cast<int>(threadIdx.x);
  auto* const lanes = reinterpret_cast<float*>(shared_memory());
  float most = 0;
  for (std::int64_t b = job.firsts[blockIdx.x] + t;
       b < job.firsts[blockIdx.x + 1];
       b += kTensorLanes) {
    most = larger(most, job.parts[b]);
  }
  lanes[t] = most;
  keep_largest(lanes, kTensorLanes);
  if (t == 0) {
    job.largest[blockIdx.x] = lanes[0] <= kLargestFloat ? lanes[0]
                                                        : float_of(0x7F800000u);
  }
}

using TwoBytes = Packet<std::uint8_t, 2>;

// Eight neighbours of a window and the tensors that they are of.
struct Eight {
  std::int64_t begin;  // in the buffer
  std::int64_t count;  // that are there, below 1: none
};

__device__ Eight eight_of(const LevelTensors& table, int round) {
  const std::int64_t begin =
      std::int64_t{blockIdx.x} * kBlock +
      (round * kThreads + static_cast<int>(threadIdx.x)) * kEight;
  return {begin, table.ends[table.tensors - 1] - begin};
}

// Calls use(k, tensor) for each number of the eight that is there.
template <class Use>
__device__ void for_numbers(
    const LevelTensors& table, const Eight& eight, const Use& use) {
  std::int64_t tensor = table.firsts[blockIdx.x];
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    if (k < eight.count) {
      while (eight.begin + k >= table.ends[tensor]) {
        ++tensor;
      }
      use(k, tensor);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    encode_kernel(const EncodeLevels job) {
  const bool wide = is_wide(job.u);
  const std::int64_t numel = job.table.ends[job.table.tensors - 1];
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const Eight eight = eight_of(job.table, r);
    if (eight.count <= 0) {
      return;
    }
    float* const u = job.u + eight.begin;
    float x[kEight];
    load_eight(u, eight.count, wide, x);
    std::uint32_t random[2][4] = {};
    if (job.cuts == nullptr) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t index = eight.begin / 4 + half;
        random[half][0] = static_cast<std::uint32_t>(index);
        random[half][1] = static_cast<std::uint32_t>(index >> 32);
        random[half][2] = job.step;
        random[half][3] = job.random_stream;
        philox(job.key, random[half]);
      }
    }
    unsigned codes[kEight] = {};
    for_numbers(job.table, eight, [&](int k, std::int64_t tensor) {
      const float level = job.levels[tensor];
      const float magnitude = ::fabsf(x[k]);
      const bool sent =
          job.cuts != nullptr
              ? magnitude > job.cuts[tensor]
              : static_cast<float>(random[k / 4][k % 4] >> 8) * 0x1.0p-24f <
                    divide(magnitude, level);
      const bool negative = (bits_of(x[k]) >> 31) != 0;
      codes[k] = !sent ? 0u : negative ? 2u : 1u;
      x[k] -= !sent ? 0.0f : negative ? -level : level;
    });
    if (job.residual) {
      store_eight(u, eight.count, wide, x);
    }
    if (job.bytes) {
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        if (k < eight.count) {
          job.wire[eight.begin + k] = static_cast<std::uint8_t>(
              codes[k] == 1 ? 2 : codes[k] == 2 ? 0 : 1);
        }
      }
      continue;
    }
    TwoBytes bits = {};
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      bits.values[k / 4] = static_cast<std::uint8_t>(
          bits.values[k / 4] | codes[k] << (2 * (k % 4)));
    }
    std::uint8_t* const to = job.wire + eight.begin / 4;
    to[0] = bits.values[0];
    if (eight.begin / 4 + 1 < (numel + 3) / 4) {
      to[1] = bits.values[1];
    }
  }
}

// A float that begins at any byte.
__device__ float unaligned_float(const std::uint8_t* from) {
  return float_of(
      from[0] | std::uint32_t{from[1]} << 8 | std::uint32_t{from[2]} << 16 |
      std::uint32_t{from[3]} << 24);
}

__global__ void __launch_bounds__(kThreads)
    average_kernel(const AverageLevels job) {
  const bool wide = is_wide(job.estimate);
  const std::int64_t numel = job.table.ends[job.table.tensors - 1];
  const std::int64_t bytes = (numel + 3) / 4;
  const std::int64_t levels = 4 * job.table.tensors;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const Eight eight = eight_of(job.table, r);
    if (eight.count <= 0) {
      return;
    }
    float x[kEight] = {};
    for (int w = 0; w < job.workers; ++w) {
      const std::uint8_t* const record = job.in + w * (levels + bytes);
      const std::int64_t byte = eight.begin / 4;
      const unsigned codes =
          record[levels + byte] |
          (byte + 1 < bytes ? unsigned{record[levels + byte + 1]} << 8 : 0u);
      for_numbers(job.table, eight, [&](int k, std::int64_t tensor) {
        const unsigned code = codes >> (2 * k) & 3;
        const int sign = static_cast<int>(code & 1) - static_cast<int>(code >> 1);
        x[k] += unaligned_float(record + 4 * tensor) * static_cast<float>(sign);
      });
    }
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      x[k] = divide(x[k], static_cast<float>(job.workers));
    }
    store_eight(job.estimate + eight.begin, eight.count, wide, x);
  }
}

__global__ void __launch_bounds__(kThreads)
    average_bytes_kernel(const AverageByteLevels job) {
  const bool wide = is_wide(job.estimate);
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const Eight eight = eight_of(job.table, r);
    if (eight.count <= 0) {
      return;
    }
    float x[kEight] = {};
    for_numbers(job.table, eight, [&](int k, std::int64_t tensor) {
      const int sum = int{job.sums[eight.begin + k]} - job.workers;
      x[k] = divide(
          job.levels[tensor] * static_cast<float>(sum),
          static_cast<float>(job.workers));
    });
    store_eight(job.estimate + eight.begin, eight.count, wide, x);
  }
}

template <class Job>
int run(void (*kernel)(Job), const Job& job, void* stream) {
  return job.table.windows == 0
             ? 0
             : launch(kernel, job.table.windows, kThreads, 0, stream, job);
}

// A launch over blocks, then one over tensors.
template <class Job>
int run_both(
    void (*blocks)(Job),
    std::size_t block_bytes,
    void (*tensors)(Job),
    std::size_t tensor_bytes,
    const Job& job,
    void* stream) {
  if (job.tensors == 0) {
    return 0;
  }
  int first = 0;
  if (job.count > 0) {
    first = launch(blocks, job.count, kThreads, block_bytes, stream, job);
  }
  const int rest =
      launch(tensors, job.tensors, kTensorLanes, tensor_bytes, stream, job);
  return first != 0 ? first : rest;
}

}  // namespace

int survivors(const Survivors& job, void* stream) {
  return run_both(
      block_survivors,
      2 * kLanes * sizeof(float),
      tensor_survivors,
      2 * kTensorLanes * sizeof(float),
      job,
      stream);
}
int largest(const Largest& job, void* stream) {
  return run_both(
      block_largest,
      kThreads * sizeof(float),
      tensor_largest,
      kTensorLanes * sizeof(float),
      job,
      stream);
}
int encode_levels(const EncodeLevels& job, void* stream) {
  return run(encode_kernel, job, stream);
}
int average_levels(const AverageLevels& job, void* stream) {
  return run(average_kernel, job, stream);
}
int average_byte_levels(const AverageByteLevels& job, void* stream) {
  return run(average_bytes_kernel, job, stream);
}

}  // namespace abtrain::kernels
