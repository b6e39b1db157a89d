// Signs of blocks of numbers with one scale a block: what a worker sends, what
// the server of a shard makes of it, what everybody reads (ops/sign_codes.h has
// the meaning). Pointers are device pointers; launches are asynchronous on
// `stream` (a cudaStream_t) and return a cudaError_t as int.
//
// The record of a block of g groups: the scale (a float), g words of signs (bit
// k of a word: number k of its group is negative), and where `fresh` g words
// that say which numbers are alive. Records lie one after another.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"

namespace abtrain::kernels {

struct EncodeSigns {
  const CodeBlock* blocks;
  std::int64_t count;
  float* u;                    // becomes what was not sent
  const std::uint32_t* alive;  // a word a group, of the table's first block on
  std::uint32_t* wire;
  bool fresh;  // alive is what differs from zero, and sent
};
int encode_signs(const EncodeSigns& job, void* stream);

struct ServeSigns {
  const CodeBlock* blocks;  // of the shard
  std::int64_t count;
  const std::uint32_t* in;  // the workers' records, worker after worker
  std::int64_t stride;      // words of a worker
  int workers;
  const std::uint32_t* alive;  // of the shard
  float* residual;             // of the shard
  std::uint32_t* wire;
  bool fresh;
};
int serve_signs(const ServeSigns& job, void* stream);

struct DecodeSigns {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::uint32_t* wire;
  std::uint32_t* alive;  // written where fresh
  float* estimate;
  bool fresh;
};
int decode_signs(const DecodeSigns& job, void* stream);

}  // namespace abtrain::kernels
