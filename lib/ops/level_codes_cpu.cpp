#include <array>
#include <cstring>
#include <limits>

#include "ops/code_blocks_cpu.h"
#include "ops/level_codes_backends.h"
#include "ops/random_words_cpu.h"
#include "ops/simd_cpu.h"

namespace abtrain::ops {

namespace {

using kernels::LevelTensors;

// x, or 0.
ABT_INLINE float where(std::uint32_t mask, float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & mask);
}

ABT_INLINE void work(const kernels::Survivors& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  const float cut = job.cuts[block.slot];
  const float* const u = job.u + block.begin;
  float sizes[kLanes] = {};
  float counts[kLanes] = {};
  for (int half = 0; half < 2; ++half) {
    const float* const x = u + half * kLanes;
    const auto count = static_cast<int>(
        std::clamp<std::int64_t>(block.count - half * kLanes, 0, kLanes));
    for (int i = 0; i < count; ++i) {
      const float magnitude = std::fabs(x[i]);
      // Without a branch, so that the compiler makes vectors of it.
      const std::uint32_t survives = all_ones(magnitude > cut);
      sizes[i] += where(survives, magnitude);
      counts[i] += where(survives, 1.0f);
    }
  }
  job.parts[2 * b] = add_by_halves(sizes);
  job.parts[2 * b + 1] = add_by_halves(counts);
}

// NaN where one of both is.
ABT_INLINE float larger(float a, float b) {
  return b > a || b != b ? b : a;
}

ABT_INLINE void work(const kernels::Largest& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  const float* const u = job.u + block.begin;
  constexpr int kWidth = 64;
  float lanes[kWidth] = {};
  std::int64_t i = 0;
  for (; i + kWidth <= block.count; i += kWidth) {
    for (int k = 0; k < kWidth; ++k) {
      lanes[k] = larger(lanes[k], std::fabs(u[i + k]));
    }
  }
  float most = 0;
  for (; i < block.count; ++i) {
    most = larger(most, std::fabs(u[i]));
  }
  for (const float lane : lanes) {
    most = larger(most, lane);
  }
  job.parts[b] = most;
}

// Calls f(begin, end, tensor) of the runs of a window that are of one tensor:
// places in the window.
template <class F>
ABT_INLINE void
for_runs(const LevelTensors& table, std::int64_t window, const F& f) {
  const std::int64_t begin = window * kBlock;
  const std::int64_t end =
      std::min(begin + kBlock, table.ends[table.tensors - 1]);
  std::int64_t tensor = table.firsts[window];
  for (std::int64_t at = begin; at < end; ++tensor) {
    const std::int64_t stop = std::min(end, table.ends[tensor]);
    f(at - begin, stop - begin, tensor);
    at = stop;
  }
}

std::int64_t count_of(const LevelTensors& table, std::int64_t window) {
  return std::min<std::int64_t>(
      kBlock, table.ends[table.tensors - 1] - window * kBlock);
}

// One number's code, 1 for +a, 2 for -a, and what remains of it.
ABT_INLINE std::uint8_t code_of(float& x, float level, std::uint32_t sent) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t negative = bits >> 31;
  const std::uint32_t value =
      (std::bit_cast<std::uint32_t>(level) ^ negative << 31) & sent;
  x -= std::bit_cast<float>(value);
  return static_cast<std::uint8_t>((1 + negative) & sent);
}

ABT_INLINE void work(const kernels::EncodeLevels& job, std::int64_t window) {
  const std::int64_t first = window * kBlock;
  const std::int64_t count = count_of(job.table, window);
  alignas(64) std::uint8_t codes[kBlock];
  alignas(64) std::uint32_t random[kBlock];
  float room[kBlock];
  if (job.cuts == nullptr) {
    random_words(
        {{job.key[0], job.key[1]}, job.step, job.random_stream},
        first / 4,
        (count + 3) / 4,
        random,
        best_simd());
  }
  float* const u = job.u + first;
  // Without a residual u stays as it is.
  float* x = u;
  if (!job.residual) {
    std::copy(u, u + count, room);
    x = room;
  }
  for_runs(
      job.table,
      window,
      [&](std::int64_t begin, std::int64_t end, std::int64_t tensor)
          ABT_INLINED {
            const float level = job.levels[tensor];
            if (job.cuts != nullptr) {
              const float cut = job.cuts[tensor];
              for (std::int64_t i = begin; i < end; ++i) {
                codes[i] = code_of(x[i], level, all_ones(std::fabs(x[i]) > cut));
              }
            } else {
              for (std::int64_t i = begin; i < end; ++i) {
                const float uniform =
                    static_cast<float>(static_cast<std::int32_t>(random[i] >> 8)) *
                    0x1.0p-24f;
                codes[i] = code_of(
                    x[i], level, all_ones(uniform < std::fabs(x[i]) / level));
              }
            }
          });
  if (job.bytes) {
    std::uint8_t* const to = job.wire + first;
    for (std::int64_t i = 0; i < count; ++i) {
      // 0, 1, 2 become 1, 2, 0.
      to[i] = static_cast<std::uint8_t>(1 + (codes[i] & 1) - (codes[i] >> 1));
    }
    return;
  }
  std::fill(codes + count, codes + (count + 3) / 4 * 4, std::uint8_t{0});
  std::uint8_t* const to = job.wire + first / 4;
  for (std::int64_t i = 0; i < (count + 3) / 4; ++i) {
    std::uint32_t four;
    std::memcpy(&four, codes + 4 * i, sizeof(four));
    to[i] = static_cast<std::uint8_t>(four | four >> 6 | four >> 12 | four >> 18);
  }
}

ABT_INLINE void work(const kernels::AverageLevels& job, std::int64_t window) {
  const std::int64_t first = window * kBlock;
  const std::int64_t count = count_of(job.table, window);
  const std::int64_t bytes =
      kernels::packed_bytes(job.table.ends[job.table.tensors - 1]);
  float sums[kBlock];
  alignas(64) std::uint8_t codes[kBlock];
  std::fill(sums, sums + count, 0.0f);
  for (int w = 0; w < job.workers; ++w) {
    const std::uint8_t* const record =
        job.in + w * (4 * job.table.tensors + bytes);
    const std::uint8_t* const from =
        record + 4 * job.table.tensors + first / 4;
    for (std::int64_t i = 0; i < (count + 3) / 4; ++i) {
      const std::uint32_t byte = from[i];
      const std::uint32_t four =
          (byte | byte << 6 | byte << 12 | byte << 18) & 0x03030303u;
      std::memcpy(codes + 4 * i, &four, sizeof(four));
    }
    for_runs(
        job.table,
        window,
        [&](std::int64_t begin, std::int64_t end, std::int64_t tensor)
            ABT_INLINED {
              float level;
              std::memcpy(&level, record + 4 * tensor, sizeof(level));
              for (std::int64_t i = begin; i < end; ++i) {
                const int sign = (codes[i] & 1) - (codes[i] >> 1);
                sums[i] += level * static_cast<float>(sign);
              }
            });
  }
  const auto workers = static_cast<float>(job.workers);
  for (std::int64_t i = 0; i < count; ++i) {
    job.estimate[first + i] = sums[i] / workers;
  }
}

ABT_INLINE void
work(const kernels::AverageByteLevels& job, std::int64_t window) {
  const std::int64_t first = window * kBlock;
  const auto workers = static_cast<float>(job.workers);
  for_runs(
      job.table,
      window,
      [&](std::int64_t begin, std::int64_t end, std::int64_t tensor)
          ABT_INLINED {
            const float level = job.levels[tensor];
            for (std::int64_t i = begin; i < end; ++i) {
              const int sum = int{job.sums[first + i]} - job.workers;
              job.estimate[first + i] =
                  level * static_cast<float>(sum) / workers;
            }
          });
}

}  // namespace

void survivors_cpu(const kernels::Survivors& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
  for (std::int64_t t = 0; t < job.tensors; ++t) {
    const float size = add_parts(job.parts, job.firsts[t], job.firsts[t + 1]);
    const float count =
        add_parts(job.parts + 1, job.firsts[t], job.firsts[t + 1]);
    job.sums[2 * t] = count > 0 ? size : job.cuts[t] * 0.0f;
    job.sums[2 * t + 1] = count;
  }
}
void largest_cpu(const kernels::Largest& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
  for (std::int64_t t = 0; t < job.tensors; ++t) {
    float most = 0;
    for (std::int64_t b = job.firsts[t]; b < job.firsts[t + 1]; ++b) {
      most = larger(most, job.parts[b]);
    }
    constexpr auto kLimits = std::numeric_limits<float>();
    job.largest[t] = most <= kLimits.max() ? most : kLimits.infinity();
  }
}
void encode_levels_cpu(const kernels::EncodeLevels& job) {
  for_blocks(
      job.table.windows, [&](std::int64_t w) ABT_INLINED { work(job, w); });
}
void average_levels_cpu(const kernels::AverageLevels& job) {
  for_blocks(
      job.table.windows, [&](std::int64_t w) ABT_INLINED { work(job, w); });
}
void average_byte_levels_cpu(const kernels::AverageByteLevels& job) {
  for_blocks(
      job.table.windows, [&](std::int64_t w) ABT_INLINED { work(job, w); });
}

}  // namespace abtrain::ops
