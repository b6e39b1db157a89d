#include "kernels/sign_codes.h"

#include "kernels/code_blocks.cuh"

namespace abtrain::kernels {

namespace {

// A sum of squares per lane and a count of bits per thread.
struct Shared {
  float tree[kLanes];
  int counts[kThreads];
};

__device__ std::int64_t
record_of(const CodeBlock* blocks, std::int64_t b, bool fresh) {
  return b + (fresh ? 2 : 1) * (blocks[b].group - blocks[0].group);
}

__device__ unsigned byte_of(const std::uint32_t* words, int byte) {
  return reinterpret_cast<const std::uint8_t*>(words)[byte];
}
__device__ void store_byte(std::uint32_t* words, int byte, unsigned value) {
  reinterpret_cast<std::uint8_t*>(words)[byte] =
      static_cast<std::uint8_t>(value);
}

__device__ unsigned signs_of(const float (&x)[kEight]) {
  unsigned signs = 0;
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    signs |= (bits_of(x[k]) >> 31) << k;
  }
  return signs;
}
__device__ unsigned nonzero_of(const float (&x)[kEight]) {
  unsigned bits = 0;
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    bits |= (x[k] != 0.0f ? 1u : 0u) << k;
  }
  return bits;
}

// The scale with the element's sign; 0 for a dead element, or NaN if the scale
// is not finite.
__device__ float value_of(float scale, unsigned signs, unsigned alive, int k) {
  return (alive >> k & 1) != 0
             ? float_of(bits_of(scale) | (signs >> k & 1) << 31)
             : scale * 0.0f;
}

// The root mean square of the elements that are alive; every thread of the
// block gets it.
__device__ float scale_of(
    const float (&x)[kRounds][kEight],
    const unsigned (&alive)[kRounds]) {
  auto& shared = *reinterpret_cast<Shared*>(shared_memory());
  const auto t = static_cast<int>(threadIdx.x);
  int count = 0;
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    shared.tree[kEight * t + k] = ::fmaf(x[1][k], x[1][k], x[0][k] * x[0][k]);
    count += static_cast<int>((alive[0] >> k & 1) + (alive[1] >> k & 1));
  }
  shared.counts[t] = count;
  add_by_halves(shared.tree, kLanes, shared.counts, kThreads);
  const float sum = shared.tree[0];
  const int all = shared.counts[0];
  return all == 0 ? sum * 0.0f : ::sqrtf(divide(sum, static_cast<float>(all)));
}

// Writes the record of a block; what it does not represent of x goes to `rest`.
__device__ void write_record(
    const CodeBlock& block,
    bool fresh,
    float (&x)[kRounds][kEight],
    const unsigned (&alive)[kRounds],
    std::uint32_t* record,
    float* rest) {
  const auto groups = static_cast<int>(groups_of(block));
  const bool wide = is_wide(rest);
  const float scale = scale_of(x, alive);
  if (threadIdx.x == 0) {
    record[0] = bits_of(scale);
  }
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int byte = r * kThreads + static_cast<int>(threadIdx.x);
    const int i = byte * kEight;
    if (byte >= 4 * groups) {
      continue;
    }
    const unsigned signs = signs_of(x[r]);
    store_byte(record + 1, byte, signs);
    if (fresh) {
      store_byte(record + 1 + groups, byte, alive[r]);
    }
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      x[r][k] -= value_of(scale, signs, alive[r], k);
    }
    store_eight(rest + i, block.count - i, wide, x[r]);
  }
}

__global__ void __launch_bounds__(kThreads)
    encode_kernel(const EncodeSigns job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const auto groups = static_cast<int>(groups_of(block));
  std::uint32_t* const record =
      job.wire + record_of(job.blocks, blockIdx.x, job.fresh);
  const std::uint32_t* const known =
      job.alive + (block.group - job.blocks[0].group);
  float* const u = job.u + block.begin;
  const bool wide = is_wide(u);
  float x[kRounds][kEight];
  unsigned alive[kRounds];
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int byte = r * kThreads + static_cast<int>(threadIdx.x);
    const int i = byte * kEight;
    load_eight(u + i, block.count - i, wide, x[r]);
    alive[r] = 0;
    if (byte < 4 * groups) {
      alive[r] = job.fresh ? nonzero_of(x[r]) : byte_of(known, byte);
    }
  }
  write_record(block, job.fresh, x, alive, record, u);
}

__global__ void __launch_bounds__(kThreads) serve_kernel(const ServeSigns job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const auto groups = static_cast<int>(groups_of(block));
  const std::int64_t place = record_of(job.blocks, blockIdx.x, job.fresh);
  std::uint32_t* const record = job.wire + place;
  const std::uint32_t* const known =
      job.alive + (block.group - job.blocks[0].group);
  float* const residual = job.residual + (block.begin - job.blocks[0].begin);
  const bool wide = is_wide(residual);
  const float share = divide(1.0f, static_cast<float>(job.workers));
  float x[kRounds][kEight];
  unsigned alive[kRounds];
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int byte = r * kThreads + static_cast<int>(threadIdx.x);
    const int i = byte * kEight;
    load_eight(residual + i, block.count - i, wide, x[r]);
    alive[r] = 0;
    if (byte >= 4 * groups) {
      continue;
    }
    alive[r] = job.fresh ? nonzero_of(x[r]) : byte_of(known, byte);
    float sum[kEight] = {};
    for (int w = 0; w < job.workers; ++w) {
      const std::uint32_t* const from = job.in + w * job.stride + place;
      const float scale = float_of(from[0]);
      const unsigned signs = byte_of(from + 1, byte);
      const unsigned there =
          job.fresh ? byte_of(from + 1 + groups, byte) : alive[r];
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        sum[k] += value_of(scale, signs, there, k);
      }
      alive[r] |= there;
    }
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      // Zero beyond the end: there, only values that are not finite would
      // differ.
      x[r][k] = i + k < block.count ? ::fmaf(sum[k], share, x[r][k]) : 0.0f;
    }
  }
  write_record(block, job.fresh, x, alive, record, residual);
}

__global__ void __launch_bounds__(kThreads)
    decode_kernel(const DecodeSigns job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const auto groups = static_cast<int>(groups_of(block));
  const std::uint32_t* const record =
      job.wire + record_of(job.blocks, blockIdx.x, job.fresh);
  std::uint32_t* const known = job.alive + (block.group - job.blocks[0].group);
  float* const estimate = job.estimate + block.begin;
  const bool wide = is_wide(estimate);
  const float scale = float_of(record[0]);
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int byte = r * kThreads + static_cast<int>(threadIdx.x);
    const int i = byte * kEight;
    if (byte >= 4 * groups) {
      continue;
    }
    const unsigned signs = byte_of(record + 1, byte);
    unsigned alive;
    if (job.fresh) {
      alive = byte_of(record + 1 + groups, byte);
      store_byte(known, byte, alive);
    } else {
      alive = byte_of(known, byte);
    }
    float x[kEight];
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      x[k] = value_of(scale, signs, alive, k);
    }
    store_eight(estimate + i, block.count - i, wide, x);
  }
}

}  // namespace

int encode_signs(const EncodeSigns& job, void* stream) {
  return launch(
      encode_kernel, job.count, kThreads, sizeof(Shared), stream, job);
}

int serve_signs(const ServeSigns& job, void* stream) {
  return launch(serve_kernel, job.count, kThreads, sizeof(Shared), stream, job);
}

int decode_signs(const DecodeSigns& job, void* stream) {
  return launch(decode_kernel, job.count, kThreads, 0, stream, job);
}

}  // namespace abtrain::kernels
