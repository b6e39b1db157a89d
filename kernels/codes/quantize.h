// Rotates blocks and converts them to codes (block_code.h), and back. This takes one pass over
// memory if a block fits a tile, the 2^kTileLog elements that a thread block holds in shared
// memory, else several passes that use `scratch`. Results are bit-identical to the CPU's (lib/ops).
// Launchers take device pointers and a cudaStream_t, and return a cudaError_t. The host has its own
// implementation, which transforms whole blocks in the CPU's caches.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/codes/block_code.h"
#include "kernels/codes/code_shards.h"
#include "kernels/host_device.h"

namespace abtrain::kernels {

// norms[b] = the 2-norm of block b, or infinity if that is NaN. For a block larger than a tile, the
// sums of squares of its tiles are added.
struct BlockNorms {
  const float* x;
  std::int64_t numel;  // zeros follow up to the last block
  std::int64_t blocks;
  int log_size;
  float* norms;
  float* tiles;  // scratch, one float per tile, if a block is larger than a tile
};
ABT_LAUNCHER int block_norms(const BlockNorms& job, void* stream);
void work_on_host(const BlockNorms& job);

struct Quantize {
  BlockCoding coding;
  float* u = nullptr;        // becomes u minus the decoded codes
  void* codes = nullptr;     // 16-byte aligned
  bool residual = true;      // false: u stays unchanged
  float* scratch = nullptr;  // blocks << log_size elements, if a block is larger than a tile
};
ABT_LAUNCHER int quantize_blocks(const Quantize& job, void* stream);
void work_on_host(const Quantize& job);

struct Dequantize {
  BlockCoding coding;
  const void* codes = nullptr;
  float zero = 0;     // the sum of codes that decodes to 0
  float members = 1;  // the divisor of the mean
  // If above 1, the codes are cut into this many shards, each followed by kTailBytes.
  int shards = 1;
  float* out = nullptr;
  float* scratch = nullptr;  // as in Quantize
};
ABT_LAUNCHER int dequantize_blocks(const Dequantize& job, void* stream);
void work_on_host(const Dequantize& job);

// Adds up `members` workers' 4-bit codes (8 stands for 0) of one shard, which `in` holds one worker
// after another. Clamps the sums to -7 .. 7, and writes them as 4-bit codes (1 .. 15), followed by
// the tail (kTailBytes). `bytes`, the size of the shard, is a multiple of 64; `members` is at most
// kMaxMembers; `partial` is scratch for kPartials counts.
struct SumCodes {
  const std::uint8_t* in = nullptr;
  std::uint8_t* out = nullptr;
  std::int64_t bytes = 0;
  int members = 0;
  std::uint32_t* partial = nullptr;
};
constexpr int kPartials = 1024;
ABT_LAUNCHER int sum_codes(const SumCodes& job, void* stream);
void work_on_host(const SumCodes& job);

// Replaces scale[0] by next_scale(), with the counts of clamped sums in the shards' tails and as
// many members as shards. `codes` is laid out as in Dequantize, in units of `unit_bytes` bytes.
struct UpdateScale {
  const std::uint8_t* codes = nullptr;
  std::int64_t units = 0;
  std::int64_t unit_bytes = 0;
  int shards = 0;
  float* scale = nullptr;
};
ABT_LAUNCHER int update_scale(const UpdateScale& job, void* stream);
ABT_HOST_DEVICE inline void update(const UpdateScale& job) {
  std::uint64_t count = 0;
  for (std::int64_t i = 1; i <= job.shards; ++i) {
    const std::int64_t tail = job.units * i / job.shards * job.unit_bytes + (i - 1) * kTailBytes;
    std::uint32_t clamped;
    ::memcpy(&clamped, job.codes + tail, sizeof(clamped));
    count += clamped;
  }
  const std::uint64_t all = 2 * static_cast<std::uint64_t>(job.units * job.unit_bytes);
  *job.scale = next_scale(*job.scale, count, all, job.shards);
}
inline void work_on_host(const UpdateScale& job) {
  update(job);
}

}  // namespace abtrain::kernels
