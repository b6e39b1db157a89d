// Makes the rows of many small matrices orthonormal in one launch, with one thread block per
// matrix. See ops/gram_schmidt.h for what it computes; the kernel's results are bit-identical to
// the CPU's. The launcher takes device pointers and a cudaStream_t, and returns a cudaError_t.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// A matrix of rows x length, rows <= length, stored row-major from index `offset` on. Its first
// `done` rows are orthonormal already, and its other rows are orthogonal to them.
struct RowSet {
  std::int64_t offset = 0;
  std::int64_t rows = 0;
  std::int64_t length = 0;
  std::int64_t done = 0;
};

constexpr int kMaxRowSets = 120;  // fits the 4 KiB of a kernel's arguments

struct RowSetList {
  int count = 0;
  RowSet sets[kMaxRowSets];
};

ABT_LAUNCHER int gram_schmidt(float* numbers, const RowSetList& sets, void* stream);

}  // namespace abtrain::kernels
