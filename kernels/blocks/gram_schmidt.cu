#include "kernels/blocks/gram_schmidt.h"

#include <cuda_runtime.h>

#include "kernels/blocks/gram_schmidt_rows.h"
#include "kernels/elements.cuh"

namespace abtrain::kernels {

namespace {

// One thread per lane; no thread touches another thread's elements of a row.
class BlockTeam {
 public:
  __device__ explicit BlockTeam(std::int64_t length)
      : lane_(static_cast<int>(threadIdx.x)),
        length_(length),
        sums_(reinterpret_cast<double*>(shared_memory())),
        places_(reinterpret_cast<std::int64_t*>(sums_ + kGramLanes)) {}

  __device__ double dot(const float* a, const float* b) {
    double sum = 0;
    for (std::int64_t i = lane_; i < length_; i += kGramLanes) {
      sum = ::fma(double{a[i]}, double{b[i]}, sum);
    }
    sums_[lane_] = sum;
    combine_by_halves(kGramLanes, [this](int to, int from) { sums_[to] += sums_[from]; });
    const double result = sums_[0];
    __syncthreads();  // all threads must read it before the next sum is written
    return result;
  }

  __device__ void add(float* a, double factor, const float* b) {
    for (std::int64_t i = lane_; i < length_; i += kGramLanes) {
      a[i] = static_cast<float>(::fma(factor, double{b[i]}, double{a[i]}));
    }
  }

  __device__ void scale(float* a, double factor) {
    for (std::int64_t i = lane_; i < length_; i += kGramLanes) {
      a[i] = static_cast<float>(factor * double{a[i]});
    }
  }

  __device__ void set_unit(float* a, const float* rows, int k) {
    double least = 0;
    std::int64_t place = length_;  // none yet
    for (std::int64_t i = lane_; i < length_; i += kGramLanes) {
      double weight = 0;
      for (int j = 0; j < k; ++j) {
        const double x = rows[j * length_ + i];
        weight = ::fma(x, x, weight);
      }
      if (place == length_ || weight < least) {
        least = weight;
        place = i;
      }
    }
    sums_[lane_] = least;
    places_[lane_] = place;
    combine_by_halves(kGramLanes, [this](int to, int from) { take_less(to, from); });
    place = places_[0];
    for (std::int64_t i = lane_; i < length_; i += kGramLanes) {
      a[i] = i == place ? 1.0f : 0.0f;
    }
    __syncthreads();
  }

 private:
  __device__ void take_less(int to, int from) {
    const bool less =
        sums_[from] < sums_[to] || (sums_[from] == sums_[to] && places_[from] < places_[to]);
    if (places_[from] < length_ && (places_[to] == length_ || less)) {
      sums_[to] = sums_[from];
      places_[to] = places_[from];
    }
  }

  int lane_;
  std::int64_t length_;
  double* sums_;
  std::int64_t* places_;
};

__global__ void __launch_bounds__(kGramLanes)
    gram_schmidt_kernel(float* numbers, const RowSetList list) {
  const RowSet& set = list.sets[blockIdx.x];
  BlockTeam team(set.length);
  orthonormal_rows(
      team, numbers + set.offset, static_cast<int>(set.done), static_cast<int>(set.rows),
      set.length);
}

}  // namespace

int gram_schmidt(float* numbers, const RowSetList& sets, void* stream) {
  return launch(
      gram_schmidt_kernel, sets.count, kGramLanes,
      kGramLanes * (sizeof(double) + sizeof(std::int64_t)), stream, numbers, sets);
}

}  // namespace abtrain::kernels
