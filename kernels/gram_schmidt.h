// Rows of many small matrices made orthonormal, a block of threads each, in one
// launch: what ops/gram_schmidt.h says, with the same bits. Pointers are device
// pointers; the launch is asynchronous on `stream` (a cudaStream_t). Returns a
// cudaError_t as int.
#pragma once

#include <cstdint>

namespace abtrain::kernels {

struct RowSet {
  std::int64_t offset;  // of its first number
  std::int32_t rows;    // at most `length`
  std::int32_t length;
};

constexpr int kMaxRowSets = 128;

struct RowSetList {
  int count = 0;
  RowSet sets[kMaxRowSets];
};

int gram_schmidt(float* numbers, const RowSetList& sets, void* stream);

}  // namespace abtrain::kernels
