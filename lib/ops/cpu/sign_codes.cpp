#include "ops/cpu/sign_codes.h"
#include "ops/cpu/code_blocks.h"

namespace abtrain::ops {

namespace {

// Words per block, one bit per element.
constexpr int kWords = kBlock / kGroup;

ABT_INLINE std::int64_t
record_of(const CodeBlock* blocks, std::int64_t b, bool fresh) {
  return b + (fresh ? 2 : 1) * (blocks[b].group - blocks[0].group);
}

ABT_INLINE void
pack_signs(const float* x, std::int64_t groups, std::uint32_t* words) {
  pack_bits(groups, words, [x](std::int64_t i) {
    return std::bit_cast<std::uint32_t>(x[i]) >> 31;
  });
}

ABT_INLINE void
pack_nonzero(const float* x, std::int64_t groups, std::uint32_t* words) {
  pack_bits(groups, words, [x](std::int64_t i) {
    return std::uint32_t{x[i] != 0.0f};
  });
}

// The scale with the element's sign. A dead element gives 0, or NaN if the
// scale is not finite.
ABT_INLINE float value_of(
    std::uint32_t scale,
    std::uint32_t dead,
    std::uint32_t signs,
    std::uint32_t alive,
    unsigned k) {
  const std::uint32_t mask = 0u - (alive >> k & 1);
  const std::uint32_t live = scale | (signs >> k & 1) << 31;
  return std::bit_cast<float>((live & mask) | (dead & ~mask));
}

// Calls use(i, value) for every element of the groups.
template <class Use>
ABT_INLINE void for_values(
    float scale,
    const std::uint32_t* signs,
    const std::uint32_t* alive,
    std::int64_t groups,
    const Use& use) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  const auto dead = std::bit_cast<std::uint32_t>(scale * 0.0f);
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::uint32_t s = signs[g];
    const std::uint32_t a = alive[g];
    for (unsigned k = 0; k < kGroup; ++k) {
      use(g * kGroup + k, value_of(bits, dead, s, a, k));
    }
  }
}

// Writes the record of x, a whole block, and subtracts from x what it says.
ABT_INLINE void write_record(
    float* x,
    std::int64_t groups,
    const std::uint32_t* alive,
    std::uint32_t* record,
    bool fresh) {
  int count = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    count += std::popcount(alive[g]);
  }
  const float sum = sum_of_squares(x);
  const float scale =
      count == 0 ? sum * 0.0f : std::sqrt(sum / static_cast<float>(count));
  record[0] = std::bit_cast<std::uint32_t>(scale);
  pack_signs(x, groups, record + 1);
  if (fresh) {
    std::copy(alive, alive + groups, record + 1 + groups);
  }
  for_values(
      scale, record + 1, alive, groups, [x](std::int64_t i, float value) {
        x[i] -= value;
      });
}

ABT_INLINE void work(const kernels::EncodeSigns& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  float scratch[kBlock];
  std::uint32_t nonzero[kWords];
  float* const u = job.u + block.begin;
  float* const x = whole_block(u, block.count, scratch);
  const std::uint32_t* alive = job.alive + (block.group - job.blocks[0].group);
  if (job.fresh) {
    pack_nonzero(x, groups, nonzero);
    alive = nonzero;
  }
  write_record(
      x,
      groups,
      alive,
      job.wire + record_of(job.blocks, b, job.fresh),
      job.fresh);
  if (x != u) {
    std::copy(x, x + block.count, u);
  }
}

ABT_INLINE void work(const kernels::ServeSigns& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  const std::int64_t place = record_of(job.blocks, b, job.fresh);
  float scratch[kBlock];
  float sum[kBlock] = {};
  std::uint32_t any[kWords];
  float* const residual = job.residual + (block.begin - job.blocks[0].begin);
  float* const x = whole_block(residual, block.count, scratch);
  const std::uint32_t* alive = job.alive + (block.group - job.blocks[0].group);
  if (job.fresh) {
    pack_nonzero(x, groups, any);
  }
  for (int w = 0; w < job.workers; ++w) {
    const std::uint32_t* const from = job.in + w * job.stride + place;
    const std::uint32_t* const there = job.fresh ? from + 1 + groups : alive;
    for_values(
        std::bit_cast<float>(from[0]),
        from + 1,
        there,
        groups,
        [&sum](std::int64_t i, float value) { sum[i] += value; });
    for (std::int64_t g = 0; job.fresh && g < groups; ++g) {
      any[g] |= there[g];
    }
  }
  // Past the block's end only a non-finite scale leaves anything; clear it.
  std::fill(sum + block.count, sum + kBlock, 0.0f);
  const float share = 1.0f / static_cast<float>(job.workers);
  for (int i = 0; i < kBlock; ++i) {
    x[i] = std::fma(sum[i], share, x[i]);
  }
  write_record(x, groups, job.fresh ? any : alive, job.wire + place, job.fresh);
  if (x != residual) {
    std::copy(x, x + block.count, residual);
  }
}

ABT_INLINE void work(const kernels::DecodeSigns& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  const std::uint32_t* const record =
      job.wire + record_of(job.blocks, b, job.fresh);
  std::uint32_t* const alive = job.alive + (block.group - job.blocks[0].group);
  if (job.fresh) {
    std::copy(record + 1 + groups, record + 1 + 2 * groups, alive);
  }
  float scratch[kBlock];
  float* const estimate = job.estimate + block.begin;
  float* const to = block.count == kBlock ? estimate : scratch;
  for_values(
      std::bit_cast<float>(record[0]),
      record + 1,
      alive,
      groups,
      [to](std::int64_t i, float value) { to[i] = value; });
  if (to != estimate) {
    std::copy(to, to + block.count, estimate);
  }
}

}  // namespace

void encode_signs_cpu(const kernels::EncodeSigns& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
}
void serve_signs_cpu(const kernels::ServeSigns& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
}
void decode_signs_cpu(const kernels::DecodeSigns& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
}

}  // namespace abtrain::ops
