#include "kernels/blocks/chunks.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/error.h"
#include "kernels/blocks/chunk_norm.h"
#include "ops/cpu/convert.h"
#include "ops/cpu/simd.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

// Vectorized if the target allows it; __builtin_fmaf is then one instruction.
ABT_INLINE void norms_of_chunks(
    float* u, const float* g, bool add, std::int64_t numel, std::int64_t chunk, float* norms) {
  for (std::int64_t begin = 0; begin < numel; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, numel);
    float lanes[kNormLanes] = {};
    std::int64_t i = begin;
    for (; i + kNormLanes <= end; i += kNormLanes) {
      // u and g are the same or do not overlap.
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
      for (int l = 0; l < kNormLanes; ++l) {
        const float x = add ? u[i + l] + g[i + l] : g[i + l];
        u[i + l] = x;
        lanes[l] = __builtin_fmaf(x, x, lanes[l]);
      }
    }
    for (int l = 0; i < end; ++i, ++l) {
      const float x = add ? u[i] + g[i] : g[i];
      u[i] = x;
      lanes[l] = __builtin_fmaf(x, x, lanes[l]);
    }
    *norms++ = sum_of_lanes(lanes);
  }
}

constexpr std::int64_t kTile = 2048;  // wire elements per tile

// Walks along the wire, tile by tile. A run is the part of a chunk that lies in one tile; it is
// contiguous in u and on the wire.
class Walk {
 public:
  explicit Walk(const Chunks& chunks) : chunks_(chunks) {
    std::int64_t last = -1;
    for (std::int64_t j = 0; j < chunks.count; ++j) {
      const std::int32_t index = chunks.indices[j];
      ABT_ASSERT(
          index > last && index * chunks.chunk < chunks.numel,
          "chunks: expected ascending indices within the tensor, got {} after "
          "{} in {} elements in chunks of {}",
          index, last, chunks.numel, chunks.chunk);
      last = index;
    }
  }
  // Calls run(at, place, valid, padding) for each run of the next tile, `size` wire elements. `at`
  // is the run's offset in the tile and `place` its offset in u; `valid` of its elements exist in
  // u, and the `padding` elements after them lie past the end of u.
  template <class Run>
  void tile(std::int64_t size, const Run& run) {
    if (chunks_.chunk == 1) {
      for (std::int64_t offset = 0; offset < size; ++offset) {
        run(offset, chunks_.indices[j_++], std::integral_constant<std::int64_t, 1>(), 0);
      }
      return;
    }
    for (std::int64_t offset = 0; offset < size;) {
      const std::int64_t place = chunks_.indices[j_] * chunks_.chunk + inside_;
      const std::int64_t length = std::min(chunks_.chunk - inside_, size - offset);
      const std::int64_t valid = std::clamp<std::int64_t>(chunks_.numel - place, 0, length);
      run(offset, place, valid, length - valid);
      offset += length;
      inside_ += length;
      if (inside_ == chunks_.chunk) {
        inside_ = 0;
        ++j_;
      }
    }
  }

 private:
  Chunks chunks_;
  std::int64_t j_ = 0;       // index of the chunk
  std::int64_t inside_ = 0;  // elements of the chunk that are already done
};

}  // namespace

void work_on_host(const AddWithNorms& job) {
  vectorized([&]() ABT_INLINED {
    // Two loops instead of a branch in each iteration.
    if (job.add) {
      norms_of_chunks(job.u, job.g, true, job.numel, job.chunk, job.norms);
    } else {
      norms_of_chunks(job.u, job.g, false, job.numel, job.chunk, job.norms);
    }
  });
}

void work_on_host(const TakeChunks& job) {
  auto* const wire = static_cast<c10::Half*>(job.wire);
  const auto members = static_cast<float>(job.members);
  const std::int64_t numel = job.chunks.count * job.chunks.chunk;
  alignas(64) std::array<float, kTile> numbers, scratch;
  Walk walk(job.chunks);
  for (std::int64_t begin = 0; begin < numel; begin += kTile) {
    const std::int64_t size = std::min(kTile, numel - begin);
    Walk back = walk;
    walk.tile(size, [&](auto offset, auto place, auto valid, auto padding) {
      std::copy_n(job.u + place, valid, numbers.data() + offset);
      std::fill_n(numbers.data() + offset + valid, padding, 0.0f);
    });
    vectorized([&]() ABT_INLINED {
      send_halves(numbers.data(), size, members, wire + begin, scratch.data());
    });
    back.tile(size, [&](auto offset, auto place, auto valid, auto) {
      std::copy_n(numbers.data() + offset, valid, job.u + place);
    });
  }
}

void work_on_host(const PutChunks& job) {
  const auto* const wire = static_cast<const c10::Half*>(job.wire);
  const std::int64_t numel = job.chunks.count * job.chunks.chunk;
  alignas(64) std::array<float, kTile> scratch;
  Walk walk(job.chunks);
  for (std::int64_t begin = 0; begin < numel; begin += kTile) {
    const std::int64_t size = std::min(kTile, numel - begin);
    to_float(wire + begin, scratch.data(), size);
    walk.tile(size, [&](auto offset, auto place, auto valid, auto) {
      if (!job.add) {
        std::copy_n(scratch.data() + offset, valid, job.out + place);
        return;
      }
      for (std::int64_t i = 0; i < valid; ++i) {
        job.out[place + i] += scratch[static_cast<std::size_t>(offset + i)];
      }
    });
  }
}

}  // namespace abtrain::kernels
