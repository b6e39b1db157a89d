#include "kernels/orders/pair_signs.h"

namespace abtrain::kernels {

void work_on_host(const PairSigns& job) {
  const float* row = job.triangle;
  for (int j = 0; j < job.rows; row += ++j) {
    float product = row[j];
    for (int i = 0; i < j; ++i) {
      product += static_cast<float>(job.signs[i]) * row[i];
    }
    job.signs[j] = product <= 0 ? std::int8_t{1} : std::int8_t{-1};
  }
}

}  // namespace abtrain::kernels
