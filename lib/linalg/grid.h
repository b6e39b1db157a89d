// Matrices as grids of k x k equal blocks. A grid is a tensor of k x k x rows/k x columns/k: [b][c]
// is the block of row class b and column class c. A class consists of adjacent rows or columns. The
// factors of the blocks are stored as grids too (LowRankPair in linalg/svd.h). Results are views if
// strides allow it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace abtrain::linalg {

// True for a grid, false for a matrix.
inline bool is_grid(const at::Tensor& matrix) {
  return matrix.dim() == 4;
}

// The transpose of a matrix, or of the matrix that a grid stands for.
inline at::Tensor transposed(const at::Tensor& matrix) {
  return is_grid(matrix) ? matrix.permute({1, 0, 3, 2}) : matrix.t();
}

// in_blocks() converts a rows x columns matrix to a grid, joined() converts the grid back. If the
// blocks are factors A, those of one row class lie side by side in the matrix.
inline at::Tensor in_blocks(const at::Tensor& matrix, std::int64_t k) {
  return matrix.unflatten(1, {k, -1}).unflatten(0, {k, -1}).transpose(1, 2);
}
inline at::Tensor joined(const at::Tensor& grid) {
  return grid.transpose(1, 2).flatten(2).flatten(0, 1);
}

// from_stacks() converts stacks to a grid, in_stacks() converts the grid back. A stack consists of
// the blocks of one column class, on top of one another; the k stacks together are k * rows x
// columns/k. The factors B of a grid's blocks are stored this way.
inline at::Tensor from_stacks(const at::Tensor& stacks, std::int64_t k) {
  return stacks.unflatten(0, {k, k, -1}).transpose(0, 1);
}
inline at::Tensor in_stacks(const at::Tensor& grid) {
  return grid.transpose(0, 1).flatten(0, 2);
}

// Returns the blocks of a grid, row class by row class; for a matrix, the matrix itself.
inline std::vector<at::Tensor> blocks_of(const at::Tensor& matrix) {
  if (!is_grid(matrix)) {
    return {matrix};
  }
  std::vector<at::Tensor> blocks;
  for (const at::Tensor& row : matrix.unbind(0)) {
    const std::vector<at::Tensor> of_row = row.unbind(0);
    blocks.insert(blocks.end(), of_row.begin(), of_row.end());
  }
  return blocks;
}

}  // namespace abtrain::linalg
