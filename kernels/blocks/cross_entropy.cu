#include "kernels/blocks/cross_entropy.h"

#include "kernels/elements.cuh"
#include "kernels/launch.cuh"

namespace abtrain::kernels {

namespace {

// The elements of a unit, as packets of 16 bytes that are each loaded or stored at once.
template <class T>
using UnitPart = Packet<T, 16 / sizeof(T)>;
template <class T>
using UnitParts = UnitPart<T>[kEntropyUnit * sizeof(T) / 16];

// The elements of a row that lie in one unit: all eight (kWhole), or those with first <= k < last.
template <class T, bool kWhole>
struct EntropyTile {
  std::int64_t at;  // index of the unit's first element in the buffer
  int first = 0;
  int last = kEntropyUnit;

  __device__ bool has(int k) const {
    return kWhole || (k >= first && k < last);
  }
  template <class Use>
  __device__ void each(const Use& use) const {
#pragma unroll
    for (int k = 0; k < kEntropyUnit; ++k) {
      if (has(k)) {
        use(k);
      }
    }
  }
  template <class Value>
  __device__ void store(T* to, const Value& value) const {
    if constexpr (kWhole) {
      constexpr int kPart = 16 / sizeof(T);
#pragma unroll
      for (int p = 0; p < kEntropyUnit / kPart; ++p) {
        UnitPart<T> part;
#pragma unroll
        for (int k = 0; k < kPart; ++k) {
          kernels::store(part.values[k], value(p * kPart + k));
        }
        reinterpret_cast<UnitPart<T>*>(to + at)[p] = part;
      }
    } else {
      each([&](int k) { kernels::store(to[at + k], value(k)); });
    }
  }
};

// The team of the threads of a block: each thread holds the lanes of one unit.
template <class T>
class EntropyTeam {
 public:
  using Element = T;
  using Lanes = float[kEntropyUnit];

  __device__ EntropyTeam(std::int64_t begin, std::int64_t length)
      : begin_(begin), end_(begin + length), aligned_(begin - begin % kEntropyUnit) {}

  template <class Use>
  __device__ void for_lanes(const Use& use) const {
#pragma unroll
    for (int k = 0; k < kEntropyUnit; ++k) {
      use(k);
    }
  }
  // Fetches the thread's next unit while it processes the current one.
  template <class Use>
  __device__ void for_tiles(const T* from, const Use& use) const {
    constexpr int kPart = 16 / sizeof(T);
    const std::int64_t step = std::int64_t{blockDim.x} * kEntropyUnit;
    std::int64_t at = aligned_ + std::int64_t{threadIdx.x} * kEntropyUnit;
    if (at < begin_) {
      use_part(from, at, use);
      at += step;
    }
    UnitParts<T> parts = {};
    UnitParts<T> next = {};
    fetch(from, at, parts);
    for (; at + kEntropyUnit <= end_; at += step) {
      fetch(from, at + step, next);
      float x[kEntropyUnit];
#pragma unroll
      for (int k = 0; k < kEntropyUnit; ++k) {
        x[k] = to_float(parts[k / kPart].values[k % kPart]);
      }
      use(EntropyTile<T, true>{at}, x);
#pragma unroll
      for (int p = 0; p < kEntropyUnit / kPart; ++p) {
        parts[p] = next[p];
      }
    }
    if (at < end_) {
      use_part(from, at, use);
    }
  }
  __device__ float largest(const Lanes& lanes) const {
    const auto larger = [](float a, float b) { return b > a ? b : a; };
    float most = lanes[0];
#pragma unroll
    for (int k = 1; k < kEntropyUnit; ++k) {
      most = larger(most, lanes[k]);
    }
    return of_all(most, larger);
  }
  template <class Value>
  __device__ float sum(const Value& value) const {
    const auto add = [](float a, float b) { return a + b; };
    float lanes[kEntropyUnit];
    for_lanes([&](int k) { lanes[k] = value(k); });
#pragma unroll
    for (int half = kEntropyUnit / 2; half > 0; half /= 2) {
#pragma unroll
      for (int k = 0; k < half; ++k) {
        lanes[k] = add(lanes[k], lanes[k + half]);
      }
    }
    return of_all(lanes[0], add);
  }
  __device__ bool owns(std::int64_t i) const {
    return (begin_ + i - aligned_) / kEntropyUnit % blockDim.x == threadIdx.x;
  }
  __device__ float at(const T* from, std::int64_t i) const {
    return to_float(from[begin_ + i]);
  }
  __device__ void store(T* to, std::int64_t i, float value) const {
    kernels::store(to[begin_ + i], value);
  }

 private:
  template <class Use>
  __device__ void use_part(const T* from, std::int64_t at, const Use& use) const {
    const std::int64_t left = end_ - at;
    const EntropyTile<T, false> tile{
        at, at < begin_ ? static_cast<int>(begin_ - at) : 0,
        left < kEntropyUnit ? static_cast<int>(left) : kEntropyUnit};
    float x[kEntropyUnit] = {};
    tile.each([&](int k) { x[k] = to_float(from[at + k]); });
    use(tile, x);
  }
  __device__ void fetch(const T* from, std::int64_t at, UnitParts<T>& parts) const {
    if (at + kEntropyUnit <= end_) {
#pragma unroll
      for (int p = 0; p < static_cast<int>(kEntropyUnit * sizeof(T) / 16); ++p) {
        parts[p] = reinterpret_cast<const UnitPart<T>*>(from + at)[p];
      }
    }
  }
  // All threads of the block must call it.
  template <class Combine>
  __device__ float of_all(float mine, const Combine& combine) const {
    auto* const tree = reinterpret_cast<float*>(shared_memory());
    tree[threadIdx.x] = mine;
    combine_by_halves(static_cast<int>(blockDim.x), [&](int to, int from) {
      tree[to] = combine(tree[to], tree[from]);
    });
    const float result = tree[0];
    __syncthreads();  // all threads must read it before the next tree is written
    return result;
  }

  std::int64_t begin_, end_;
  std::int64_t aligned_;  // begin_, rounded down to the beginning of a unit
};

// At least two thread blocks per multiprocessor, which leaves 64 registers per thread.
template <class T, bool kSmooth>
__global__ void __launch_bounds__(kEntropyUnits, 2) entropy_kernel(const CrossEntropy job) {
  const std::int64_t row = blockIdx.x;
  EntropyTeam<T> team(row * job.length, job.length);
  cross_entropy_row<kSmooth>(team, job, row);
}

template <class T>
int queue_entropy(const CrossEntropy& job, void* stream) {
  int threads = 32;
  // A row that begins inside a unit leaves up to seven lanes before its first element empty.
  while (threads < kEntropyUnits && threads * kEntropyUnit < job.length + kEntropyUnit - 1) {
    threads *= 2;
  }
  const auto bytes = static_cast<std::size_t>(threads) * sizeof(float);
  return launch(
      job.smoothing > 0 ? entropy_kernel<T, true> : entropy_kernel<T, false>, job.rows, threads,
      bytes, stream, job);
}

}  // namespace

int cross_entropy(const CrossEntropy& job, void* stream) {
  return job.element == Element::BF16 ? queue_entropy<__nv_bfloat16>(job, stream)
                                      : queue_entropy<float>(job, stream);
}

}  // namespace abtrain::kernels
