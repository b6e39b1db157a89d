// Codes -a, 0, +a of numbers with a level a a tensor, for tensors that follow one
// another without gaps: what levels come from, encoding, the mean over workers
// (ops/level_codes.h has the meaning). Pointers are device pointers; launches are
// asynchronous on `stream` (a cudaStream_t) and return a cudaError_t as int.
//
// Two bits a number, 0 for 0, 1 for +a, 2 for -a, four in a byte, the first in the
// two low bits; the bytes run on over the ends of tensors. A worker's record is
// its levels (fp32, one a tensor), then its codes. Bytes, to be added up: 0, 1, 2
// for -a, 0, +a.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"

namespace abtrain::kernels {

// Tensor k has the numbers from ends[k - 1] (0 for the first) to ends[k]. A window
// is kBlock numbers from a multiple of kBlock on, whatever tensors they are of.
struct LevelTensors {
  const std::int64_t* ends;
  const std::int64_t* firsts;  // tensor of each window's first number
  std::int64_t tensors;
  std::int64_t windows;
};

inline std::int64_t packed_bytes(std::int64_t numel) {
  return (numel + 3) / 4;
}

// Of each tensor, in blocks that do not cross tensors.
struct Survivors {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::int64_t* firsts;  // first block of each tensor; count at the end
  std::int64_t tensors;
  const float* u;
  const float* cuts;  // one a tensor
  float* parts;       // room for 2 a block
  float* sums;        // of |u| above the cut, and how many those are
};
int survivors(const Survivors& job, void* stream);

struct Largest {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::int64_t* firsts;
  std::int64_t tensors;
  const float* u;
  float* parts;    // room for 1 a block
  float* largest;  // |u|; infinite where one is not finite
};
int largest(const Largest& job, void* stream);

struct EncodeLevels {
  LevelTensors table;
  float* u;  // becomes what was not sent, with `residual`
  const float* levels;
  const float* cuts;  // sent is what is above; null: with probability |u| / level
  bool residual;
  bool bytes;  // not two bits
  std::uint32_t key[2];  // of the random numbers
  std::uint32_t step;
  std::uint32_t random_stream;
  std::uint8_t* wire;
};
int encode_levels(const EncodeLevels& job, void* stream);

// Records of workers, one after another, to the mean.
struct AverageLevels {
  LevelTensors table;
  const std::uint8_t* in;
  int workers;
  float* estimate;
};
int average_levels(const AverageLevels& job, void* stream);

// Sums of bytes, with levels that all workers share, to the mean.
struct AverageByteLevels {
  LevelTensors table;
  const std::uint8_t* sums;
  int workers;
  const float* levels;
  float* estimate;
};
int average_byte_levels(const AverageByteLevels& job, void* stream);

}  // namespace abtrain::kernels
