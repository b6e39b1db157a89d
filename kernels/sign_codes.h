// Signs of blocks of elements, with one scale per block: what a worker sends,
// how the server of a shard processes it, and what all workers read
// (ops/sign_codes.h has the meaning). Pointers are device pointers; launches
// are asynchronous on `stream` (a cudaStream_t) and return a cudaError_t as an
// int.
//
// The record of a block of g groups has the scale (a float), g words of signs
// (bit k of a word is set if element k of its group is negative) and, if
// `fresh`, g words that tell which elements are alive. Records follow one
// another.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"

namespace abtrain::kernels {

struct EncodeSigns {
  const CodeBlock* blocks;
  std::int64_t count;
  float* u;                    // becomes what was not sent
  const std::uint32_t* alive;  // one word per group, from the first block on
  std::uint32_t* wire;
  bool fresh;  // elements other than zero are alive, which is sent; ignores
               // alive
};
int encode_signs(const EncodeSigns& job, void* stream);

struct ServeSigns {
  const CodeBlock* blocks;  // the shard's blocks
  std::int64_t count;
  const std::uint32_t* in;  // the workers' records, worker after worker
  std::int64_t stride;      // words per worker
  int workers;
  const std::uint32_t* alive;  // the shard's words
  float* residual;             // the shard's residual
  std::uint32_t* wire;
  bool fresh;
};
int serve_signs(const ServeSigns& job, void* stream);

struct DecodeSigns {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::uint32_t* wire;
  std::uint32_t* alive;  // written if fresh
  float* estimate;
  bool fresh;
};
int decode_signs(const DecodeSigns& job, void* stream);

}  // namespace abtrain::kernels
