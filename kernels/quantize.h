// Rotated blocks to codes and back, in one pass over memory where a block fits
// a thread block's shared memory (2^kTileLog numbers), else in several passes
// by way of `scratch`. The bits are those of the CPU forms in lib/ops. Device
// pointers; asynchronous on `stream`; returns a cudaError_t as int.
#pragma once

#include <cstdint>

#include "kernels/block_code.h"
#include "kernels/code_shards.h"

namespace abtrain::kernels {

// norms[b] = root of the sum of squares of block b; infinity where that is NaN.
int block_norms(
    const float* x,
    std::int64_t numel,
    std::int64_t blocks,
    int log_size,
    float* norms,
    void* stream);

struct Quantize {
  BlockCoding coding;
  float* u = nullptr;     // becomes u less what the codes stand for
  void* codes = nullptr;  // 16-byte aligned
  bool residual = true;   // else u stays
  float* scratch =
      nullptr;  // blocks << log_size, where a block is above a tile
};
int quantize_blocks(const Quantize& job, void* stream);

struct Dequantize {
  BlockCoding coding;
  const void* codes = nullptr;
  float zero = 0;     // the sum of codes that stands for 0
  float members = 1;  // by which is divided
  // Above 1: codes lie in so many shards, a tail of kTailBytes behind each.
  int shards = 1;
  float* out = nullptr;
  float* scratch = nullptr;
};
int dequantize_blocks(const Dequantize& job, void* stream);

// The sums of 4-bit codes (8 stands for 0) of `members` shards of `bytes` that
// lie one behind another, clamped to 1 .. 15, and behind them the tail. `bytes`
// a multiple of 64; `partial`: scratch for kPartials counts. Members up to
// kMostMembers.
struct SumCodes {
  const std::uint8_t* in = nullptr;
  std::uint8_t* out = nullptr;
  std::int64_t bytes = 0;
  int members = 0;
  std::uint32_t* partial = nullptr;
};
constexpr int kPartials = 1024;
int sum_codes(const SumCodes& job, void* stream);

// scale[0] *= 1.1 where more than 4 % of the sums were clamped, /= 1.05 where
// fewer than 1 %; within 0.25 and the number of shards. `codes` as in
// Dequantize: units of `unit_bytes`.
struct UpdateScale {
  const std::uint8_t* codes = nullptr;
  std::int64_t units = 0;
  std::int64_t unit_bytes = 0;
  int shards = 0;
  float* scale = nullptr;
};
int update_scale(const UpdateScale& job, void* stream);

}  // namespace abtrain::kernels
