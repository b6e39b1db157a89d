#include <cstring>
#include <vector>

#include "kernels/codes/level_codes.h"
#include "ops/cpu/level_codes_simd.h"
#include "ops/cpu/random_words.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

std::int64_t count_of(const LevelTensors& table, std::int64_t window) {
  return std::min<std::int64_t>(kBlock, table.numel - window * kBlock);
}

// Calls f(block, place in the window) for each block of a window.
template <class F>
ABT_INLINE void for_window(const LevelTensors& table, std::int64_t window, const F& f) {
  for (std::int64_t b = table.windows[window]; b < table.windows[window + 1]; ++b) {
    f(b, table.blocks[b].begin - window * kBlock);
  }
}

ABT_INLINE void store_bytes(const std::uint8_t* codes, std::int64_t count, std::uint8_t* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = byte_code(codes[i]);
  }
}

ABT_INLINE float float_sign(std::uint32_t code) {
  return static_cast<float>(sign_of(code));
}

ABT_INLINE void work(const EncodeAbove& job, std::int64_t w) {
  alignas(64) std::uint8_t codes[kCodeBytes] = {};
  for_window(job.table, w, [&](std::int64_t b, std::int64_t place) ABT_INLINED {
    const CodeBlock& block = job.table.blocks[b];
    const float cut = job.cuts[block.slot];
    Sent sent;
    if (block.count == kBlock) {
      sent = encode_window(job.u + block.begin, cut, codes);
    } else {
      // The zero padding is never above the cut.
      alignas(64) float scratch[kBlock] = {};
      std::uint8_t own[kCodeBytes];
      std::copy_n(job.u + block.begin, block.count, scratch + place);
      sent = encode_window(scratch, cut, own);
      for (int i = 0; i < kCodeBytes; ++i) {
        codes[i] |= own[i];
      }
    }
    job.parts[2 * b] = sent.size;
    job.parts[2 * b + 1] = sent.count;
  });
  const std::int64_t count = count_of(job.table, w);
  if (job.form == CodeForm::Bytes) {
    std::uint8_t each[kBlock];
    unpack_codes(codes, kCodeBytes, each);
    store_bytes(each, count, job.codes + w * kBlock);
  } else {
    std::copy_n(codes, packed_bytes(count), job.codes + w * kCodeBytes);
  }
}

ABT_INLINE void work(const EncodeByChance& job, std::int64_t w) {
  const std::int64_t count = count_of(job.table, w);
  const std::int64_t bytes = packed_bytes(count);
  alignas(64) std::uint8_t codes[kBlock];
  alignas(64) std::uint32_t random[kBlock];
  random_words(job.random, w * kCodeBytes, bytes, random);
  for_window(job.table, w, [&](std::int64_t b, std::int64_t place) ABT_INLINED {
    const CodeBlock& block = job.table.blocks[b];
    const float level = job.levels[block.slot];
    const float* const x = job.u + block.begin;
    for (std::int64_t i = 0; i < block.count; ++i) {
      const auto bits = static_cast<std::int32_t>(random[place + i] >> 8);
      const float uniform = static_cast<float>(bits) * 0x1.0p-24f;
      codes[place + i] =
          static_cast<std::uint8_t>(code_of(x[i], all_ones(uniform < std::fabs(x[i]) / level)));
    }
  });
  if (job.form == CodeForm::Bytes) {
    store_bytes(codes, count, job.codes + w * kBlock);
  } else {
    std::fill(codes + count, codes + 4 * bytes, std::uint8_t{0});
    pack_codes(codes, bytes, job.codes + w * kCodeBytes);
  }
}

ABT_INLINE void work(const SubtractLevels& job, std::int64_t w) {
  alignas(64) std::uint8_t codes[kBlock];
  const bool bytes = job.form == CodeForm::Bytes;
  if (!bytes) {
    unpack_codes(job.codes + w * kCodeBytes, packed_bytes(count_of(job.table, w)), codes);
  }
  for_window(job.table, w, [&](std::int64_t b, std::int64_t place) ABT_INLINED {
    const CodeBlock& block = job.table.blocks[b];
    const float level = job.levels[block.slot];
    float* const u = job.u + block.begin;
    if (bytes) {
      for (std::int64_t i = 0; i < block.count; ++i) {
        const int code = job.codes[block.begin + i];
        u[i] -= level * static_cast<float>(code - 1);
      }
    } else {
      for (std::int64_t i = 0; i < block.count; ++i) {
        u[i] -= level * float_sign(codes[place + i]);
      }
    }
  });
}

void work(const AverageLevels& job, std::int64_t w) {
  const std::int64_t head = 4 * job.table.tensor_count;
  const std::int64_t stride = head + packed_bytes(job.table.numel);
  std::vector<Multiples> levels(static_cast<std::size_t>(job.workers));
  const AverageRun run{
      job.in + head + w * kCodeBytes, stride, levels.data(), job.workers,
      job.estimate + w * kBlock};
  for_window(job.table, w, [&](std::int64_t b, std::int64_t place) {
    const CodeBlock& block = job.table.blocks[b];
    for (int worker = 0; worker < job.workers; ++worker) {
      float level;
      std::memcpy(&level, job.in + worker * stride + 4 * block.slot, sizeof(level));
      for (int code = 0; code < 8; ++code) {
        levels[static_cast<std::size_t>(worker)].of[code] =
            level * float_sign(static_cast<std::uint32_t>(code & 3));
      }
    }
    average_window(run, place, place + block.count);
  });
}

ABT_INLINE void work(const AverageByteLevels& job, std::int64_t b) {
  const CodeBlock& block = job.table.blocks[b];
  const float level = job.levels[block.slot];
  const auto workers = static_cast<float>(job.workers);
  for (std::int64_t i = block.begin; i < block.begin + block.count; ++i) {
    const int sum = int{job.sums[i]} - job.workers;
    job.estimate[i] = level * static_cast<float>(sum) / workers;
  }
}

}  // namespace

void work_on_host(const EncodeAbove& job) {
  const LevelTensors& table = job.table;
  for_blocks(table.window_count, [&](std::int64_t w) ABT_INLINED { work(job, w); });
  for (std::int64_t t = 0; t < table.tensor_count; ++t) {
    const std::int64_t first = table.tensors[t];
    const std::int64_t end = table.tensors[t + 1];
    const float size = add_parts(job.parts, 2, first, end);
    const float count = add_parts(job.parts + 1, 2, first, end);
    job.sums[2 * t] = count > 0 ? size : job.cuts[t] * 0.0f;
    job.sums[2 * t + 1] = count;
  }
}
void work_on_host(const EncodeByChance& job) {
  for_blocks(job.table.window_count, [&](std::int64_t w) ABT_INLINED { work(job, w); });
}
void work_on_host(const SubtractLevels& job) {
  for_blocks(job.table.window_count, [&](std::int64_t w) ABT_INLINED { work(job, w); });
}
void work_on_host(const AverageLevels& job) {
  for_blocks(job.table.window_count, [&](std::int64_t w) ABT_INLINED { work(job, w); });
}
void work_on_host(const AverageByteLevels& job) {
  for_blocks(job.table.block_count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
}

}  // namespace abtrain::kernels
