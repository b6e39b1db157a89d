#include "kernels/codes/level_codes.h"

#include "kernels/code_blocks.cuh"

namespace abtrain::kernels {

namespace {

// Eight adjacent elements of a window.
struct Eight {
  std::int64_t begin;  // index in the buffer
  std::int64_t count;  // how many exist
};

// Calls use(eight, round) for each of this thread's two groups of eight that
// contains an element.
template <class Use>
__device__ void for_eights(const LevelTensors& table, const Use& use) {
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const std::int64_t begin = std::int64_t{blockIdx.x} * kBlock + first_of(r);
    if (begin >= table.numel) {
      return;
    }
    use(Eight{begin, table.numel - begin}, r);
  }
}

// Calls use(k, tensor) for each of the eight elements that exists.
template <class Use>
__device__ void for_numbers(const LevelTensors& table, const Eight& eight, const Use& use) {
  const CodeBlock* block = table.blocks + table.windows[blockIdx.x];
  const auto end = [&] { return block->begin + block->count; };
  while (eight.begin >= end()) {
    ++block;
  }
  const std::int64_t slot = block->slot;
  if (eight.begin + kEight <= end()) {  // what belongs to the tensor is read once
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      use(k, slot);
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    if (k < eight.count) {
      while (eight.begin + k >= end()) {
        ++block;
      }
      use(k, block->slot);
    }
  }
}

__device__ unsigned code_of(float x, bool sent) {
  const bool negative = (bits_of(x) >> 31) != 0;
  return !sent ? 0u : negative ? 2u : 3u;
}

// `codes`: as load_codes() returns them.
__device__ void store_codes(
    unsigned codes, const Eight& eight, std::int64_t numel, CodeForm form, std::uint8_t* to) {
  if (form == CodeForm::Bytes) {
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      if (k < eight.count) {
        to[eight.begin + k] = byte_code(codes >> shift_of(k) & 3);
      }
    }
    return;
  }
  std::uint8_t* const at = to + eight.begin / 4;
  at[0] = static_cast<std::uint8_t>(codes);
  if (eight.begin / 4 + 1 < packed_bytes(numel)) {
    at[1] = static_cast<std::uint8_t>(codes >> 8);
  }
}

// The two bytes of the codes of eight elements, the first one in the low bits.
__device__ unsigned load_codes(const std::uint8_t* codes, const Eight& eight, std::int64_t numel) {
  const std::int64_t byte = eight.begin / 4;
  return codes[byte] | (byte + 1 < packed_bytes(numel) ? unsigned{codes[byte + 1]} << 8 : 0u);
}

// The sign of the k-th of these eight codes.
__device__ float sign_at(unsigned codes, int k) {
  return static_cast<float>(sign_of(codes >> shift_of(k) & 3));
}

// Needs shared memory for 2 kLanes floats. Lane i has elements i and i + kLanes
// of the window; the blocks of a window are processed one after another.
__global__ void __launch_bounds__(kThreads) encode_above_kernel(const EncodeAbove job) {
  const auto t = static_cast<int>(threadIdx.x);
  const std::int64_t window = std::int64_t{blockIdx.x} * kBlock;
  float x[kRounds][kEight];
  unsigned codes[kRounds] = {};
  load_block(job.u + window, job.table.numel - window, x);
  auto* const sizes = reinterpret_cast<float*>(shared_memory());
  float* const counts = sizes + kLanes;
  for (std::int64_t b = job.table.windows[blockIdx.x]; b < job.table.windows[blockIdx.x + 1]; ++b) {
    const CodeBlock block = job.table.blocks[b];
    const std::int64_t begin = block.begin % kBlock;
    const float cut = job.cuts[block.slot];
    unsigned survivors[kRounds] = {};  // a bit each
    float lanes[kEight] = {};
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        const int place = first_of(r) + k;
        const float magnitude = ::fabsf(x[r][k]);
        const bool survives = place >= begin && place < begin + block.count && magnitude > cut;
        lanes[k] += survives ? magnitude : 0.0f;
        survivors[r] |= (survives ? 1u : 0u) << k;
        codes[r] |= code_of(x[r][k], survives) << shift_of(k);
      }
    }
    write_lanes(sizes, lanes);
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      lanes[k] = static_cast<float>((survivors[0] >> k & 1) + (survivors[1] >> k & 1));
    }
    write_lanes(counts, lanes);
    add_by_halves(sizes, kLanes, counts, kLanes);
    if (t == 0) {
      job.parts[2 * b] = sizes[0];
      job.parts[2 * b + 1] = counts[0];
    }
  }
  for_eights(job.table, [&](const Eight& eight, int r) {
    store_codes(codes[r], eight, job.table.numel, job.form, job.codes);
  });
}

__global__ void __launch_bounds__(kTensorLanes) tensor_survivors(const EncodeAbove job) {
  const std::int64_t tensor = blockIdx.x;
  auto* const tree = reinterpret_cast<float*>(shared_memory());
  add_pairs(job.parts, job.table.tensors[tensor], job.table.tensors[tensor + 1], tree);
  if (threadIdx.x == 0) {
    const float count = tree[kTensorLanes];
    // A cut that is not finite has no survivors, but must make the sum NaN.
    job.sums[2 * tensor] = count > 0 ? tree[0] : job.cuts[tensor] * 0.0f;
    job.sums[2 * tensor + 1] = count;
  }
}

__global__ void __launch_bounds__(kThreads) encode_by_chance_kernel(const EncodeByChance job) {
  const bool wide = is_aligned(job.u, 16);
  for_eights(job.table, [&](const Eight& eight, int) {
    float x[kEight];
    load_first(job.u + eight.begin, eight.count, wide, x);
    std::uint32_t random[2][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      random_block(job.random, eight.begin / 4 + half, random[half]);
    }
    unsigned codes = 0;
    for_numbers(job.table, eight, [&](int k, std::int64_t tensor) {
      const float uniform = static_cast<float>(random[k / 4][k % 4] >> 8) * 0x1.0p-24f;
      codes |= code_of(x[k], uniform < divide(::fabsf(x[k]), job.levels[tensor])) << shift_of(k);
    });
    store_codes(codes, eight, job.table.numel, job.form, job.codes);
  });
}

__global__ void __launch_bounds__(kThreads) subtract_kernel(const SubtractLevels job) {
  const bool wide = is_aligned(job.u, 16);
  for_eights(job.table, [&](const Eight& eight, int) {
    float* const u = job.u + eight.begin;
    float x[kEight];
    load_first(u, eight.count, wide, x);
    const bool bytes = job.form == CodeForm::Bytes;
    const unsigned codes = bytes ? 0u : load_codes(job.codes, eight, job.table.numel);
    for_numbers(job.table, eight, [&](int k, std::int64_t tensor) {
      const float sign =
          bytes ? static_cast<float>(int{job.codes[eight.begin + k]} - 1) : sign_at(codes, k);
      x[k] -= job.levels[tensor] * sign;
    });
    store_first(u, eight.count, wide, x);
  });
}

// Reads a float from an unaligned address.
__device__ float unaligned_float(const std::uint8_t* from) {
  return float_of(
      from[0] | std::uint32_t{from[1]} << 8 | std::uint32_t{from[2]} << 16 |
      std::uint32_t{from[3]} << 24);
}

__global__ void __launch_bounds__(kThreads) average_kernel(const AverageLevels job) {
  const bool wide = is_aligned(job.estimate, 16);
  const std::int64_t levels = 4 * job.table.tensor_count;
  const std::int64_t stride = levels + packed_bytes(job.table.numel);
  for_eights(job.table, [&](const Eight& eight, int) {
    float x[kEight] = {};
    for (int w = 0; w < job.workers; ++w) {
      const std::uint8_t* const record = job.in + w * stride;
      const unsigned codes = load_codes(record + levels, eight, job.table.numel);
      for_numbers(job.table, eight, [&](int k, std::int64_t tensor) {
        x[k] += unaligned_float(record + 4 * tensor) * sign_at(codes, k);
      });
    }
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      x[k] = divide(x[k], static_cast<float>(job.workers));
    }
    store_first(job.estimate + eight.begin, eight.count, wide, x);
  });
}

__global__ void __launch_bounds__(kThreads) average_bytes_kernel(const AverageByteLevels job) {
  const bool wide = is_aligned(job.estimate, 16);
  for_eights(job.table, [&](const Eight& eight, int) {
    float x[kEight] = {};
    for_numbers(job.table, eight, [&](int k, std::int64_t tensor) {
      const int sum = int{job.sums[eight.begin + k]} - job.workers;
      x[k] = divide(job.levels[tensor] * static_cast<float>(sum), static_cast<float>(job.workers));
    });
    store_first(job.estimate + eight.begin, eight.count, wide, x);
  });
}

template <class Job>
int run_windows(void (*kernel)(Job), std::size_t shared_floats, const Job& job, void* stream) {
  return launch(
      kernel, job.table.window_count, kThreads, shared_floats * sizeof(float), stream, job);
}

}  // namespace

int encode_above(const EncodeAbove& job, void* stream) {
  return first_error(
      {run_windows(encode_above_kernel, 2 * kLanes, job, stream),
       launch(
           tensor_survivors, job.table.tensor_count, kTensorLanes, 2 * kTensorLanes * sizeof(float),
           stream, job)});
}
int encode_by_chance(const EncodeByChance& job, void* stream) {
  return run_windows(encode_by_chance_kernel, 0, job, stream);
}
int subtract_levels(const SubtractLevels& job, void* stream) {
  return run_windows(subtract_kernel, 0, job, stream);
}
int average_levels(const AverageLevels& job, void* stream) {
  return run_windows(average_kernel, 0, job, stream);
}
int average_byte_levels(const AverageByteLevels& job, void* stream) {
  return run_windows(average_bytes_kernel, 0, job, stream);
}

}  // namespace abtrain::kernels
