// Codes -t, 0, +t of blocks of elements, with one threshold t per tensor: the
// sums from which t is computed, encoding, and sums over workers
// (ops/twobit_codes.h has the meaning). Pointers are device pointers;
// launches are asynchronous on `stream` (a cudaStream_t) and return a
// cudaError_t as an int.
//
// kernels/ternary_codes.h has the codes. A sum k in -n .. n over n workers is
// stored as k + n, or as 2 n + 1 if a value is not finite. The sums of a block
// are stored as bit planes: one word per group for bit 0, then those for bit 1,
// and so on. Blocks follow one another by their groups.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"
#include "kernels/ternary_codes.h"

namespace abtrain::kernels {

struct EncodeThreshold {
  const CodeBlock* blocks;
  std::int64_t count;
  float* u;                 // becomes what was not sent
  const float* thresholds;  // one per tensor
  std::uint8_t* wire;
  CodeForm form;
};
int encode_threshold(const EncodeThreshold& job, void* stream);

// The sums of the workers' two-bit codes, in `bits` bits per element.
struct PackSums {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::uint8_t* in;
  std::int64_t stride;
  int workers;
  std::uint32_t* wire;
  int bits;
};
int pack_sums(const PackSums& job, void* stream);

// What a mean is computed from: the workers' two-bit codes, which follow one
// another; their sums as bit planes; or sums of byte codes.
enum class CodeWire { Codes, Planes, Bytes };

struct AverageCodes {
  const CodeBlock* blocks;
  std::int64_t count;
  const void* in;
  CodeWire wire;
  std::int64_t stride;  // of codes: bytes per worker
  int bits;             // of planes: bits per sum
  int workers;
  const float* thresholds;
  float* estimate;
};
int average_codes(const AverageCodes& job, void* stream);

// Added to a sum for each value that is not finite; larger than any other sum.
constexpr int kNotFinite = 1 << 20;

}  // namespace abtrain::kernels
