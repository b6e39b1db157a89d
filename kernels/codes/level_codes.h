// Codes -a, 0, +a of values, with one level a per tensor, for tensors that
// follow one another without gaps: encoding, and the mean over workers
// (ops/level_codes.h has the meaning). Pointers are device pointers; launches
// are asynchronous on `stream` (a cudaStream_t) and return a cudaError_t as an
// int.
//
// Codes (kernels/codes/ternary_codes.h) continue across the ends of tensors, so
// that a byte may hold two-bit codes of several ones. A worker's record is its
// levels (fp32, one per tensor) followed by its two-bit codes. The host has a
// form of its own: it codes a window at a time with instructions that shuffle
// bytes, which no loop over elements reaches.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"
#include "kernels/codes/ternary_codes.h"
#include "kernels/host_device.h"
#include "kernels/random.h"

namespace abtrain::kernels {

// A window is kBlock elements that begin at a multiple of kBlock, whichever
// tensors they belong to; a block is the part of one tensor in one window, at
// least one element.
struct LevelTensors {
  const CodeBlock* blocks;
  const std::int64_t* windows;  // first block of each window, then block_count
  const std::int64_t* tensors;  // first block of each tensor, then block_count
  std::int64_t window_count;
  std::int64_t tensor_count;
  std::int64_t block_count;
  std::int64_t numel;
};

struct EncodeAbove {
  LevelTensors table;
  const float* u;
  const float* cuts;  // one per tensor, 0 or more: |u| above it is sent
  CodeForm form;
  std::uint8_t* codes;
  float* parts;  // scratch: 2 per block
  float* sums;   // 2 per tensor: sum and count of the |u| above the cut
};
ABT_LAUNCHER int encode_above(const EncodeAbove& job, void* stream);
void work_on_host(const EncodeAbove& job);

struct EncodeByChance {
  LevelTensors table;
  const float* u;
  const float* levels;  // an element is sent with probability |u| / level
  CodeForm form;
  std::uint8_t* codes;
  RandomStream random;  // a word per element
};
ABT_LAUNCHER int encode_by_chance(const EncodeByChance& job, void* stream);
void work_on_host(const EncodeByChance& job);

// Subtracts what was sent from u.
struct SubtractLevels {
  LevelTensors table;
  float* u;
  const float* levels;
  CodeForm form;
  const std::uint8_t* codes;
};
ABT_LAUNCHER int subtract_levels(const SubtractLevels& job, void* stream);
void work_on_host(const SubtractLevels& job);

// The mean of the workers' records, which follow one another in `in`.
struct AverageLevels {
  LevelTensors table;
  const std::uint8_t* in;
  int workers;
  float* estimate;
};
ABT_LAUNCHER int average_levels(const AverageLevels& job, void* stream);
void work_on_host(const AverageLevels& job);

// The mean from sums of byte codes, with levels that all workers share.
struct AverageByteLevels {
  LevelTensors table;
  const std::uint8_t* sums;
  int workers;
  const float* levels;
  float* estimate;
};
ABT_LAUNCHER int average_byte_levels(const AverageByteLevels& job, void* stream);
void work_on_host(const AverageByteLevels& job);

}  // namespace abtrain::kernels
