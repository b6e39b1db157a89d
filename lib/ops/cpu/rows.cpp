#include <numeric>
#include <vector>

#include "kernels/blocks/rows.h"
#include "ops/cpu/code_blocks.h"
#include "ops/cpu/convert.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

constexpr std::int64_t kTile = 1024;

ABT_INLINE void send_row(float* u, std::int64_t length, float members, c10::Half* wire) {
  alignas(64) float scratch[kTile];
  for (std::int64_t i = 0; i < length; i += kTile) {
    send_halves(u + i, std::min(kTile, length - i), members, wire + i, scratch);
  }
}

ABT_INLINE void add_row(const c10::Half* wire, std::int64_t length, float* estimate) {
  alignas(64) float scratch[kTile];
  for (std::int64_t i = 0; i < length; i += kTile) {
    const std::int64_t count = std::min(kTile, length - i);
    to_float(wire + i, scratch, count);
    for (std::int64_t k = 0; k < count; ++k) {
      estimate[i + k] += scratch[k];
    }
  }
}

// Chooses the rows with the largest norms. Compares the bits of the norms: as integers, they have
// the order of the norms, with NaN as the largest.
void choose(const RowTensor& tensor, const float* norms, std::int32_t* chosen) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(tensor.rows));
  std::iota(rows.begin(), rows.end(), 0);
  std::partial_sort(
      rows.begin(), rows.begin() + tensor.chosen, rows.end(),
      [norms](std::int32_t a, std::int32_t b) {
        const auto x = std::bit_cast<std::uint32_t>(norms[a]);
        const auto y = std::bit_cast<std::uint32_t>(norms[b]);
        return x > y || (x == y && a < b);
      });
  std::copy(rows.begin(), rows.begin() + tensor.chosen, chosen);
}

}  // namespace

void work_on_host(const RowNorms& job) {
  for (int t = 0; t < job.count; ++t) {
    const RowTensor& tensor = job.tensors[t];
    for_blocks(tensor.rows, [&](std::int64_t row) ABT_INLINED {
      const float* const x = job.u + tensor.begin + row * tensor.length;
      job.norms[tensor.first_row + row] = dot_in_lanes<kRowLanes, float>(x, x, tensor.length);
    });
  }
}

void work_on_host(const ChooseRows& job) {
  for (int t = 0; t < job.count; ++t) {
    const RowTensor& tensor = job.tensors[t];
    choose(tensor, job.norms + tensor.first_row, job.chosen + tensor.first_chosen);
  }
}

void work_on_host(const SendRows& job) {
  for (int t = 0; t < job.count; ++t) {
    const RowTensor& tensor = job.tensors[t];
    auto* const wire = static_cast<c10::Half*>(job.wire) + tensor.first_value;
    for_blocks(tensor.chosen, [&](std::int64_t i) ABT_INLINED {
      send_row(
          job.u + tensor.begin + job.chosen[tensor.first_chosen + i] * tensor.length, tensor.length,
          static_cast<float>(job.members), wire + i * tensor.length);
    });
  }
}

void work_on_host(const AddRows& job) {
  for (int t = 0; t < job.count; ++t) {
    const RowTensor& tensor = job.tensors[t];
    const auto* const wire = static_cast<const c10::Half*>(job.wire) + tensor.first_value;
    for_blocks(tensor.chosen, [&](std::int64_t i) ABT_INLINED {
      add_row(
          wire + i * tensor.length, tensor.length,
          job.estimate + tensor.begin + job.chosen[tensor.first_chosen + i] * tensor.length);
    });
  }
}

}  // namespace abtrain::kernels
