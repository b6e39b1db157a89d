// Codes -a, 0, +a of numbers with a level a a tensor, for tensors that follow
// one another without gaps: what levels come from, encoding, the mean over
// workers (ops/level_codes.h has the meaning). Pointers are device pointers;
// launches are asynchronous on `stream` (a cudaStream_t) and return a
// cudaError_t as int.
//
// Two bits a number, 0 for 0, 1 for +a, 2 for -a, four in a byte, the first in
// the two low bits; the bytes run on over the ends of tensors. A worker's
// record is its levels (fp32, one a tensor), then its codes. Bytes, to be added
// up: 0, 1, 2 for -a, 0, +a.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"

namespace abtrain::kernels {

// A window is kBlock numbers from a multiple of kBlock on, whatever tensors
// they are of; a block is what a window has of one tensor, at least a number.
struct LevelTensors {
  const CodeBlock* blocks;
  const std::int64_t*
      windows;  // first block of each, and at the end all blocks
  const std::int64_t* tensors;  // the same
  std::int64_t window_count;
  std::int64_t tensor_count;
  std::int64_t block_count;
  std::int64_t numel;
};

inline std::int64_t packed_bytes(std::int64_t numel) {
  return (numel + 3) / 4;
}

struct Sizes {
  LevelTensors table;
  const float* u;
  bool largest;  // not the sum
  float* parts;  // scratch: 1 per block
  float* sizes;  // of |u|, one a tensor; the largest: infinite where one is not
                 // finite
};
int sizes(const Sizes& job, void* stream);

struct EncodeAbove {
  LevelTensors table;
  const float* u;
  const float* cuts;  // one a tensor, 0 or more: |u| above it is sent
  bool bytes;         // not two bits
  std::uint8_t* codes;
  float* parts;  // scratch: 2 per block
  float* sums;   // 2 a tensor: of |u| above the cut, and how many those are
};
int encode_above(const EncodeAbove& job, void* stream);

struct EncodeByChance {
  LevelTensors table;
  const float* u;
  const float* levels;  // sent with the probability |u| / level
  bool bytes;
  std::uint8_t* codes;
  std::uint32_t key[2];  // of the random numbers
  std::uint32_t step;
  std::uint32_t random_stream;
};
int encode_by_chance(const EncodeByChance& job, void* stream);

// u becomes what was not sent.
struct SubtractLevels {
  LevelTensors table;
  float* u;
  const float* levels;
  bool bytes;
  const std::uint8_t* codes;
};
int subtract_levels(const SubtractLevels& job, void* stream);

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
