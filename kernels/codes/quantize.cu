#include "kernels/codes/quantize.h"

#include "kernels/blocks/hadamard.cuh"
#include "kernels/blocks/hadamard.h"

namespace abtrain::kernels {

namespace {

// Writes the random signs of the tile's elements, 32 per word, to shared memory.
template <int kLog>
__device__ void stage_signs(const BlockCoding& c, std::int64_t begin, std::uint32_t* signs) {
  const int t = static_cast<int>(threadIdx.x);
  if (t < (1 << kLog) / kUnit) {
    std::uint32_t words[4];
    random_block(c.signs, (c.first + begin) / kUnit + t, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      signs[4 * t + i] = c.rotate ? words[i] : 0;
    }
  }
  __syncthreads();
}

// Returns the signs of this thread's eight elements in bits 0 to 7.
__device__ std::uint32_t own_signs(const std::uint32_t* signs) {
  const unsigned t = threadIdx.x;
  return signs[t / 4] >> (t % 4 * 8);
}

__device__ std::uint32_t sign_bit(std::uint32_t signs, int v) {
  return signs << (31 - v);
}

__device__ float range_at(const BlockCoding& c, std::int64_t place) {
  const std::int64_t block = place >> c.log_size;
  return block < c.blocks ? c.ranges[block] : 0.0f;
}

// Returns whether this thread's element v is its first one or begins a block (of fewer than eight
// elements), so that a range must be fetched.
__device__ bool needs_range(const BlockCoding& c, int v) {
  return v == 0 || (c.log_size < 3 && v % (1 << c.log_size) == 0);
}

__device__ void store_codes(
    const std::uint32_t (&k)[8], void* codes, Lanes lanes, std::int64_t begin) {
  if (lanes == Lanes::Byte) {
    const Packet<std::uint32_t, 2> packet{
        {k[0] | k[1] << 8 | k[2] << 16 | k[3] << 24, k[4] | k[5] << 8 | k[6] << 16 | k[7] << 24}};
    static_cast<Packet<std::uint32_t, 2>*>(codes)[begin / 8] = packet;
  } else if (lanes == Lanes::Pair) {
    const Packet<std::uint32_t, 4> packet{
        {k[0] | k[1] << 16, k[2] | k[3] << 16, k[4] | k[5] << 16, k[6] | k[7] << 16}};
    static_cast<Packet<std::uint32_t, 4>*>(codes)[begin / 8] = packet;
  } else {
    std::uint32_t packed = 0;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      packed |= k[v] << (4 * v);
    }
    static_cast<std::uint32_t*>(codes)[begin / 8] = packed;
  }
}

__device__ void load_codes(float (&x)[8], const Dequantize& job, std::int64_t begin) {
  const void* codes = job.codes;
  if (job.coding.lanes == Lanes::Byte) {
    const auto packet = static_cast<const Packet<std::uint32_t, 2>*>(codes)[begin / 8];
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const std::uint32_t k = packet.values[v / 4] >> (v % 4 * 8) & 255u;
      x[v] = static_cast<float>(k) - job.zero;
    }
  } else if (job.coding.lanes == Lanes::Pair) {
    const auto packet = static_cast<const Packet<std::uint32_t, 4>*>(codes)[begin / 8];
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const std::uint32_t k = packet.values[v / 2] >> (v % 2 * 16) & 65535u;
      x[v] = static_cast<float>(k) - job.zero;
    }
  } else {
    std::int64_t tails = 0;
    if (job.shards > 1) {
      const std::int64_t unit = unit_of(job.coding.log_size);
      tails = shard_of(begin / unit, (job.coding.blocks << job.coding.log_size) / unit, job.shards);
    }
    const std::uint32_t packed =
        static_cast<const std::uint32_t*>(codes)[begin / 8 + tails * (kTailBytes / 4)];
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      x[v] = static_cast<float>(packed >> (4 * v) & 15u) - job.zero;
    }
  }
}

// Does up to three steps on a tile. kLoad rotates u to coordinates. kCode converts coordinates to
// codes and, for the residual, rotates the decoded codes back. kFinish subtracts these from u,
// which leaves the residual. If a block is larger than a tile, each step is a separate launch.
template <int kLog, bool kLoad, bool kCode, bool kFinish>
__global__ void __launch_bounds__(kTileThreads<kLog>)
    quantize_kernel(const Quantize job, bool wide) {
  const BlockCoding& c = job.coding;
  auto* const shared = reinterpret_cast<float*>(shared_memory());
  auto* const signs = reinterpret_cast<std::uint32_t*>(shared_memory() + kTileBytes<kLog>);
  const std::int64_t tile = std::int64_t{blockIdx.x} << kLog;
  const std::int64_t begin = tile + 8 * static_cast<int>(threadIdx.x);
  const std::int64_t end = c.blocks << c.log_size;
  const int stages = !c.rotate ? 0 : c.log_size < kLog ? c.log_size : kLog;
  float u[8];
  float x[8];
  if (kLoad || kFinish) {
    stage_signs<kLog>(c, tile, signs);
    load_first(job.u + begin, c.numel - begin, wide, u);
  }
  if (kLoad) {
    const std::uint32_t own = own_signs(signs);
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      x[v] = signed_by(u[v], sign_bit(own, v));
    }
    transform_tile<kLog>(x, shared, stages);
  } else {
    load_first(job.scratch + begin, end - begin, true, x);
  }
  if (kCode) {
    std::uint32_t random[4];
    random_block(c.rounding, (c.first + begin) / 8, random);
    std::uint32_t codes[8];
    float scale = 0;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      if (needs_range(c, v)) {
        scale = code_scale(range_at(c, begin + v), c.limit, c.log_size, c.rotate);
      }
      codes[v] = code_of(x[v], scale, c.limit, c.offset, random[v / 2] >> (v % 2 * 16) & 65535u);
      x[v] = static_cast<float>(codes[v]) - c.offset;
    }
    if (begin < end) {
      store_codes(codes, job.codes, c.lanes, begin);
    }
    if (job.residual) {
      transform_tile<kLog>(x, shared, stages);
    }
  }
  if (!kFinish) {
    store_first(job.scratch + begin, end - begin, true, x);
  } else if (job.residual) {
    const std::uint32_t own = own_signs(signs);
    float value = 0;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      if (needs_range(c, v)) {
        value = code_value(range_at(c, begin + v), c.limit, c.log_size, c.rotate, 1.0f);
      }
      // A block with a range that is not finite leaves a residual of 0; it decodes to NaN.
      u[v] = value == value ? ::fmaf(-signed_by(value, sign_bit(own, v)), x[v], u[v]) : 0.0f;
    }
    store_first(job.u + begin, c.numel - begin, wide, u);
  }
}

template <int kLog, bool kLoad, bool kFinish>
__global__ void __launch_bounds__(kTileThreads<kLog>)
    dequantize_kernel(const Dequantize job, bool wide) {
  const BlockCoding& c = job.coding;
  auto* const shared = reinterpret_cast<float*>(shared_memory());
  auto* const signs = reinterpret_cast<std::uint32_t*>(shared_memory() + kTileBytes<kLog>);
  const std::int64_t tile = std::int64_t{blockIdx.x} << kLog;
  const std::int64_t begin = tile + 8 * static_cast<int>(threadIdx.x);
  const std::int64_t end = c.blocks << c.log_size;
  const int stages = !c.rotate ? 0 : c.log_size < kLog ? c.log_size : kLog;
  float x[8] = {};
  if (kLoad) {
    if (begin < end) {
      load_codes(x, job, begin);
    }
    transform_tile<kLog>(x, shared, stages);
  } else {
    load_first(job.scratch + begin, end - begin, true, x);
  }
  if (!kFinish) {
    store_first(job.scratch + begin, end - begin, true, x);
    return;
  }
  stage_signs<kLog>(c, tile, signs);
  const std::uint32_t own = own_signs(signs);
  float value = 0;
#pragma unroll
  for (int v = 0; v < 8; ++v) {
    if (needs_range(c, v)) {
      value = code_value(range_at(c, begin + v), c.limit, c.log_size, c.rotate, job.members);
    }
    x[v] = signed_by(value, sign_bit(own, v)) * x[v];
  }
  store_first(job.out + begin, c.numel - begin, wide, x);
}

template <int kLog, class Job>
int queue(void (*kernel)(Job, bool), const Job& job, bool wide, void* stream) {
  const std::int64_t numel = job.coding.blocks << job.coding.log_size;
  constexpr int kSigns = (1 << kLog) / 8;  // bytes
  return launch(
      kernel, (numel + (std::int64_t{1} << kLog) - 1) >> kLog, kTileThreads<kLog>,
      kTileBytes<kLog> + kSigns, stream, job, wide);
}

constexpr int kSmallLog = 10;

}  // namespace

int quantize_blocks(const Quantize& job, void* stream) {
  const BlockCoding& c = job.coding;
  const std::int64_t numel = c.blocks << c.log_size;
  const bool wide = is_aligned(job.u, 16);
  if (c.log_size <= kSmallLog) {
    return queue<kSmallLog>(quantize_kernel<kSmallLog, true, true, true>, job, wide, stream);
  }
  constexpr int kLog = kTileLog;
  if (c.log_size <= kLog) {
    return queue<kLog>(quantize_kernel<kLog, true, true, true>, job, wide, stream);
  }
  const auto above = [&] {
    return c.rotate ? hadamard_above_tile(job.scratch, numel, c.log_size, stream) : 0;
  };
  const int status = first_error(
      {queue<kLog>(quantize_kernel<kLog, true, false, false>, job, wide, stream), above(),
       queue<kLog>(quantize_kernel<kLog, false, true, false>, job, wide, stream)});
  if (!job.residual || status != 0) {
    return status;
  }
  return first_error(
      {above(), queue<kLog>(quantize_kernel<kLog, false, false, true>, job, wide, stream)});
}

int dequantize_blocks(const Dequantize& job, void* stream) {
  const BlockCoding& c = job.coding;
  const std::int64_t numel = c.blocks << c.log_size;
  const bool wide = is_aligned(job.out, 16);
  if (c.log_size <= kSmallLog) {
    return queue<kSmallLog>(dequantize_kernel<kSmallLog, true, true>, job, wide, stream);
  }
  constexpr int kLog = kTileLog;
  if (c.log_size <= kLog) {
    return queue<kLog>(dequantize_kernel<kLog, true, true>, job, wide, stream);
  }
  return first_error(
      {queue<kLog>(dequantize_kernel<kLog, true, false>, job, wide, stream),
       c.rotate ? hadamard_above_tile(job.scratch, numel, c.log_size, stream) : 0,
       queue<kLog>(dequantize_kernel<kLog, false, true>, job, wide, stream)});
}

}  // namespace abtrain::kernels
