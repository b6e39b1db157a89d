#include "kernels/orders/pair_signs.h"

#include <cuda_runtime.h>

#include "kernels/launch.cuh"

namespace abtrain::kernels {

namespace {

// Thread j chooses the sign of row j: for each i < j, it adds sign i times the product of rows i
// and j as soon as thread i has chosen sign i.
__global__ void __launch_bounds__(kMaxPairRows) choose_signs(const PairSigns job) {
  auto* const chosen = reinterpret_cast<float*>(shared_memory());
  const auto j = static_cast<int>(threadIdx.x);
  const float* const row = job.triangle + j * (j + 1) / 2;
  float product = j < job.rows ? row[j] : 0.0f;
  for (int i = 0; i < job.rows; ++i) {
    if (j == i) {
      *chosen = product <= 0 ? 1.0f : -1.0f;
      job.signs[i] = static_cast<std::int8_t>(*chosen);
    }
    __syncthreads();
    if (j > i && j < job.rows) {
      product += *chosen * row[i];  // only the addition rounds
    }
    __syncthreads();
  }
}

}  // namespace

int pair_signs(const PairSigns& job, void* stream) {
  return launch(choose_signs, 1, job.rows, sizeof(float), stream, job);
}

}  // namespace abtrain::kernels
