// A Team (team.h) of the 256 threads of a thread block, and the kernel that runs it. Thread t
// processes elements 8 t .. 8 t + 7 and 2048 + 8 t .. 2048 + 8 t + 7 of a code block.
#pragma once

#include "kernels/code_blocks.cuh"
#include "kernels/random.h"
#include "kernels/team.h"

namespace abtrain::kernels {

class CudaTeam {
 public:
  static constexpr int kUnit = kEight;
  static constexpr int kUnits = kRounds;

  template <class Use>
  __device__ void for_units(const CodeBlock& block, const Use& use) const {
    const auto units = static_cast<int>(kGroup / kUnit * groups_of(block));
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      if (unit_of(r) < units) {
        use(unit_of(r), r);
      }
    }
  }
  __device__ std::uint32_t bits(const std::uint32_t* words, int unit) const {
    return reinterpret_cast<const std::uint8_t*>(words)[unit];
  }
  __device__ void store_bits(std::uint32_t* words, int unit, std::uint32_t bits) const {
    reinterpret_cast<std::uint8_t*>(words)[unit] = static_cast<std::uint8_t>(bits);
  }
  __device__ void load(const float* from, int unit, std::int64_t count, float (&x)[kUnit]) const {
    const int i = unit * kUnit;
    load_first(from + i, count - i, is_aligned(from, 16), x);
  }
  template <class Value>
  __device__ void store(float* to, int unit, std::int64_t count, const Value& value) const {
    float x[kUnit];
#pragma unroll
    for (int k = 0; k < kUnit; ++k) {
      x[k] = value(k);
    }
    const int i = unit * kUnit;
    store_first(to + i, count - i, is_aligned(to, 16), x);
  }
  __device__ void bytes(
      const std::uint8_t* from, int unit, std::int64_t count, std::uint8_t (&x)[kUnit]) const {
    const int i = unit * kUnit;
    load_first(from + i, count - i, is_aligned(from, kUnit), x);
  }
  template <class Value>
  __device__ void store_bytes(
      std::uint8_t* to, int unit, std::int64_t count, const Value& value) const {
    std::uint8_t x[kUnit];
#pragma unroll
    for (int k = 0; k < kUnit; ++k) {
      x[k] = static_cast<std::uint8_t>(value(k));
    }
    const int i = unit * kUnit;
    store_first(to + i, count - i, is_aligned(to, kUnit), x);
  }
  __device__ void two_bits(
      const std::uint8_t* from, int unit, std::int64_t count, std::uint32_t (&codes)[kUnit]) const {
    std::uint8_t x[kUnit / 4];
    load_first(
        from + unit * kUnit / 4, packed_bytes(count - unit * kUnit), is_aligned(from, kUnit / 4),
        x);
#pragma unroll
    for (int k = 0; k < kUnit; ++k) {
      codes[k] = std::uint32_t{x[k / 4]} >> shift_of(k % 4) & 3;
    }
  }
  __device__ void store_two_bits(
      std::uint8_t* to, int unit, std::int64_t count, const std::uint32_t (&codes)[kUnit]) const {
    std::uint8_t x[kUnit / 4] = {};
#pragma unroll
    for (int k = 0; k < kUnit; ++k) {
      x[k / 4] = static_cast<std::uint8_t>(x[k / 4] | codes[k] << shift_of(k % 4));
    }
    store_first(
        to + unit * kUnit / 4, packed_bytes(count - unit * kUnit), is_aligned(to, kUnit / 4), x);
  }
  __device__ void random(
      const RandomStream& stream, std::int64_t first, int unit,
      std::uint32_t (&words)[kUnit]) const {
#pragma unroll
    for (int begin = 0; begin < kUnit; begin += 4) {
      random_block(stream, (first + unit * kUnit + begin) / 4, words + begin);
    }
  }

 private:
  __device__ static int unit_of(int round) {
    return round * kThreads + static_cast<int>(threadIdx.x);
  }
};

template <class Job>
__global__ void __launch_bounds__(kThreads) block_kernel(const Job job) {
  CudaTeam team;
  work(team, job, static_cast<std::int64_t>(blockIdx.x));
}

template <class Job>
int launch_blocks(const Job& job, void* stream) {
  return launch(block_kernel<Job>, job.count, kThreads, 0, stream, job);
}

}  // namespace abtrain::kernels
