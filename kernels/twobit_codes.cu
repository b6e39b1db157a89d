#include "kernels/twobit_codes.h"

#include "kernels/code_blocks.cuh"

namespace abtrain::kernels {

namespace {

constexpr float kLargest = 3.402823466e+38f;

using EightBytes = Packet<std::uint8_t, 8>;

// Calls use(eight, i) for each run of eight elements of this thread: the index
// of the run and of its first element in the block.
template <class Use>
__device__ void for_eights(const CodeBlock& block, const Use& use) {
  const std::int64_t groups = groups_of(block);
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int eight = r * kThreads + static_cast<int>(threadIdx.x);
    if (eight < 4 * groups) {
      use(eight, eight * kEight);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    encode_kernel(const EncodeThreshold job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  float* const u = job.u + block.begin;
  const bool wide = is_wide(u);
  const float t = job.thresholds[block.slot];
  const std::int64_t group = block.group - job.blocks[0].group;
  for_eights(block, [&](int eight, int i) {
    float x[kEight];
    load_eight(u + i, block.count - i, wide, x);
    unsigned codes[kEight];
    EightBytes bytes;
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      const bool finite = ::fabsf(x[k]) <= kLargest;
      const bool up = finite && x[k] >= t;
      const bool down = finite && !up && x[k] <= -t;
      codes[k] = !finite ? 1u : up ? 3u : down ? 2u : 0u;
      bytes.values[k] = byte_code(codes[k]);
      x[k] = up ? x[k] - t : down ? x[k] + t : x[k];
    }
    if (job.form == CodeForm::Bytes) {
      reinterpret_cast<EightBytes*>(job.wire + kGroup * group)[eight] = bytes;
    } else {
      reinterpret_cast<TwoBytes*>(job.wire + kEight * group)[eight] =
          pack_eight(codes);
    }
    store_eight(u + i, block.count - i, wide, x);
  });
}

// The sums of the workers' codes of eight elements, plus `workers`; above
// 2 workers for a value that is not finite.
__device__ void add_codes(
    const std::uint8_t* in,
    std::int64_t stride,
    int workers,
    int eight,
    int (&sums)[kEight]) {
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    sums[k] = workers;
  }
  for (int w = 0; w < workers; ++w) {
    const TwoBytes bits =
        reinterpret_cast<const TwoBytes*>(in + w * stride)[eight];
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      const unsigned code = unsigned{bits.values[k / 4]} >> shift_of(k % 4) & 3;
      sums[k] += sign_of(code) + (code == 1 ? kNotFinite : 0);
    }
  }
}

__global__ void __launch_bounds__(kThreads) pack_kernel(const PackSums job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const std::int64_t groups = groups_of(block);
  const std::int64_t group = block.group - job.blocks[0].group;
  auto* const planes =
      reinterpret_cast<std::uint8_t*>(job.wire + job.bits * group);
  for_eights(block, [&](int eight, int) {
    int sums[kEight];
    add_codes(job.in + kEight * group, job.stride, job.workers, eight, sums);
    const int most = 2 * job.workers + 1;
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      sums[k] = sums[k] < most ? sums[k] : most;
    }
    for (int p = 0; p < job.bits; ++p) {
      unsigned byte = 0;
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        byte |= static_cast<unsigned>(sums[k] >> p & 1) << k;
      }
      planes[4 * groups * p + eight] = static_cast<std::uint8_t>(byte);
    }
  });
}

__global__ void __launch_bounds__(kThreads)
    average_kernel(const AverageCodes job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const std::int64_t groups = groups_of(block);
  const std::int64_t group = block.group - job.blocks[0].group;
  float* const estimate = job.estimate + block.begin;
  const bool wide = is_wide(estimate);
  const float factor =
      divide(job.thresholds[block.slot], static_cast<float>(job.workers));
  const auto* const in = static_cast<const std::uint8_t*>(job.in);
  for_eights(block, [&](int eight, int i) {
    int sums[kEight] = {};
    if (job.wire == CodeWire::Codes) {
      add_codes(in + kEight * group, job.stride, job.workers, eight, sums);
    } else if (job.wire == CodeWire::Bytes) {
      const EightBytes bytes =
          reinterpret_cast<const EightBytes*>(in + kGroup * group)[eight];
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        sums[k] = bytes.values[k];
      }
    } else {
      const std::uint8_t* const planes = in + 4 * job.bits * group;
      for (int p = 0; p < job.bits; ++p) {
        const int byte = planes[4 * groups * p + eight];
#pragma unroll
        for (int k = 0; k < kEight; ++k) {
          sums[k] |= (byte >> k & 1) << p;
        }
      }
    }
    float x[kEight];
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      x[k] = sums[k] > 2 * job.workers
                 ? not_a_number()
                 : factor * static_cast<float>(sums[k] - job.workers);
    }
    store_eight(estimate + i, block.count - i, wide, x);
  });
}

}  // namespace

int encode_threshold(const EncodeThreshold& job, void* stream) {
  return launch(encode_kernel, job.count, kThreads, 0, stream, job);
}
int average_codes(const AverageCodes& job, void* stream) {
  return launch(average_kernel, job.count, kThreads, 0, stream, job);
}
int pack_sums(const PackSums& job, void* stream) {
  return launch(pack_kernel, job.count, kThreads, 0, stream, job);
}

}  // namespace abtrain::kernels
