#include "kernels/blocks/rows.h"

#include <algorithm>

#include "kernels/code_blocks.cuh"

namespace abtrain::kernels {

namespace {

constexpr int kNormThreads = kRowLanes / 4;
constexpr int kCopyThreads = 128;

// Returns the tensor that contains row `index` (kFirst: first_row) or chosen row `index` (kFirst:
// first_chosen), counted over all tensors.
template <std::int64_t RowTensor::*kFirst>
__device__ const RowTensor& tensor_of(const RowTensor* tensors, int count, std::int64_t index) {
  int low = 0;
  int high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (tensors[middle].*kFirst <= index ? low : high) = middle;
  }
  return tensors[low];
}

// One thread block per row; thread i holds lanes 4 i .. 4 i + 3.
__global__ void __launch_bounds__(kNormThreads) norms_kernel(const RowNorms job) {
  const RowTensor& tensor = tensor_of<&RowTensor::first_row>(job.tensors, job.count, blockIdx.x);
  const float* const row = job.u + tensor.begin + (blockIdx.x - tensor.first_row) * tensor.length;
  const bool wide = is_aligned(row, 16);
  const int t = 4 * static_cast<int>(threadIdx.x);
  float lanes[4] = {};
  for (std::int64_t i = t; i < tensor.length; i += kRowLanes) {
    float x[4];
    load_first(row + i, tensor.length - i, wide, x);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      lanes[k] = ::fmaf(x[k], x[k], lanes[k]);
    }
  }
  auto* const tree = reinterpret_cast<float*>(shared_memory());
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    tree[t + k] = lanes[k];
  }
  combine_by_halves(kRowLanes, [=](int to, int from) { tree[to] += tree[from]; });
  if (t == 0) {
    job.norms[blockIdx.x] = tree[0];
  }
}

// One thread per row counts the rows that rank before it. The bits of nonnegative values, taken as
// integers, have the same order as the values, with NaN as the largest.
__global__ void __launch_bounds__(kThreads) choose_kernel(const ChooseRows job) {
  const std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (index >= job.rows) {
    return;
  }
  const RowTensor& tensor = tensor_of<&RowTensor::first_row>(job.tensors, job.count, index);
  const float* const norms = job.norms + tensor.first_row;
  const auto row = static_cast<int>(index - tensor.first_row);
  const std::uint32_t own = bits_of(norms[row]);
  std::int64_t rank = 0;
  for (int other = 0; other < tensor.rows; ++other) {
    const std::uint32_t bits = bits_of(norms[other]);
    rank += bits > own || (bits == own && other < row) ? 1 : 0;
  }
  if (rank < tensor.chosen) {
    job.chosen[tensor.first_chosen + rank] = row;
  }
}

// The chosen row that a thread block processes: its beginning in the buffer (`from`) and on the
// wire, and its length.
struct ChosenRow {
  std::int64_t from;
  std::int64_t wire;
  std::int64_t length;
};
__device__ ChosenRow chosen_row(const RowTensor* tensors, int count, const std::int32_t* chosen) {
  const RowTensor& tensor = tensor_of<&RowTensor::first_chosen>(tensors, count, blockIdx.x);
  return {
      tensor.begin + chosen[blockIdx.x] * tensor.length,
      tensor.first_value + (blockIdx.x - tensor.first_chosen) * tensor.length, tensor.length};
}

__global__ void __launch_bounds__(kCopyThreads) send_kernel(const SendRows job) {
  const ChosenRow chosen = chosen_row(job.tensors, job.count, job.chosen);
  float* const u = job.u + chosen.from;
  __half* const wire = static_cast<__half*>(job.wire) + chosen.wire;
  const bool wide = is_aligned(u, 16);
  const bool wide_wire = is_aligned(wire, 16);
  const auto members = static_cast<float>(job.members);
  const float share = divide(1.0f, members);
  for (std::int64_t i = kEight * threadIdx.x; i < chosen.length; i += kEight * blockDim.x) {
    const std::int64_t left = chosen.length - i;
    float x[kEight];
    load_first(u + i, left, wide, x);
    __half sent[kEight];
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      store(sent[k], x[k] * share);
      x[k] = ::fmaf(-members, to_float(sent[k]), x[k]);
    }
    store_first(u + i, left, wide, x);
    store_first(wire + i, left, wide_wire, sent);
  }
}

__global__ void __launch_bounds__(kCopyThreads) add_kernel(const AddRows job) {
  const ChosenRow chosen = chosen_row(job.tensors, job.count, job.chosen);
  float* const estimate = job.estimate + chosen.from;
  const __half* const wire = static_cast<const __half*>(job.wire) + chosen.wire;
  const bool wide = is_aligned(estimate, 16);
  const bool wide_wire = is_aligned(wire, 16);
  for (std::int64_t i = kEight * threadIdx.x; i < chosen.length; i += kEight * blockDim.x) {
    const std::int64_t left = chosen.length - i;
    float x[kEight];
    load_first(estimate + i, left, wide, x);
    __half sent[kEight];
    load_first(wire + i, left, wide_wire, sent);
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      x[k] += to_float(sent[k]);
    }
    store_first(estimate + i, left, wide, x);
  }
}

}  // namespace

int row_norms(const RowNorms& job, void* stream) {
  return launch(norms_kernel, job.rows, kNormThreads, kRowLanes * sizeof(float), stream, job);
}

int choose_rows(const ChooseRows& job, void* stream) {
  return launch(choose_kernel, (job.rows + kThreads - 1) / kThreads, kThreads, 0, stream, job);
}

int send_rows(const SendRows& job, void* stream) {
  return launch(send_kernel, job.total, kCopyThreads, 0, stream, job);
}

int add_rows(const AddRows& job, void* stream) {
  return launch(add_kernel, job.total, kCopyThreads, 0, stream, job);
}

}  // namespace abtrain::kernels
