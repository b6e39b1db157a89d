// Codes -t, 0, +t of blocks of numbers, a threshold t a tensor: the sums that t
// comes from, encoding, sums over workers (ops/threshold_codes.h has the
// meaning). Pointers are device pointers; launches are asynchronous on `stream`
// (a cudaStream_t) and return a cudaError_t as int.
//
// Two-bit codes: 3 for +t, 2 for -t, 0, and 1 for what is not finite; four a
// byte, the first in the two high bits. Bytes: 0, 1, 2 for -t, 0, +t. Sums over
// n workers: k in -n .. n as k + n, 2 n + 1 where a number is not finite; a
// block has a word a group for bit 0, then those for bit 1, ... Blocks lie one
// after another by their groups.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"

namespace abtrain::kernels {

struct Moments {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::int64_t* firsts;  // first block of each tensor; count at the end
  std::int64_t tensors;
  const float* u;
  float* parts;  // scratch: 2 per block
  float* sums;   // of squares and of absolute values of each tensor
};
int moments(const Moments& job, void* stream);

struct EncodeThreshold {
  const CodeBlock* blocks;
  std::int64_t count;
  float* u;                 // becomes what was not sent
  const float* thresholds;  // one a tensor
  std::uint8_t* wire;
  bool bytes;  // not two bits
};
int encode_threshold(const EncodeThreshold& job, void* stream);

// Two-bit codes of workers, one after another, to the mean.
struct AverageCodes {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::uint8_t* in;
  std::int64_t stride;  // bytes of a worker
  int workers;
  const float* thresholds;
  float* estimate;
};
int average_codes(const AverageCodes& job, void* stream);

// The same to their sums, in `bits` bits.
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

// Sums, in bits or of bytes, to the mean.
struct UnpackSums {
  const CodeBlock* blocks;
  std::int64_t count;
  const void* wire;
  int workers;
  int bits;  // 0: bytes
  const float* thresholds;
  float* estimate;
};
int unpack_sums(const UnpackSums& job, void* stream);

// A sum that tells that some number was not finite.
constexpr int kNotFinite = 1 << 20;

}  // namespace abtrain::kernels
