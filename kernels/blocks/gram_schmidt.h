// Makes the rows of many small matrices orthonormal in one launch, with one
// thread block per matrix. ops/gram_schmidt.h has the meaning; the bits are the
// same. Pointers are device pointers; the launch is asynchronous on `stream` (a
// cudaStream_t) and returns a cudaError_t as an int.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

struct RowSet {
  std::int64_t offset;  // index of its first element
  std::int32_t rows;    // at most `length`
  std::int32_t length;
};

constexpr int kMaxRowSets = 128;

struct RowSetList {
  int count = 0;
  RowSet sets[kMaxRowSets];
};

ABT_LAUNCHER int gram_schmidt(float* numbers, const RowSetList& sets, void* stream);

}  // namespace abtrain::kernels
