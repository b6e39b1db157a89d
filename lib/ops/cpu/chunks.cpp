#include <algorithm>
#include <array>
#include <type_traits>

#include "base/error.h"
#include "kernels/chunk_norm.h"
#include "ops/cpu/chunks.h"
#include "ops/cpu/convert.h"
#include "ops/cpu/simd.h"

namespace abtrain::ops {

namespace {

using kernels::kNormLanes;

// Vectorized where the target allows; __builtin_fmaf is then one instruction.
ABT_INLINE void norms_of_chunks(
    float* u,
    const float* g,
    bool add,
    std::int64_t numel,
    std::int64_t chunk,
    float* norms) {
  for (std::int64_t begin = 0; begin < numel; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, numel);
    float lanes[kNormLanes] = {};
    std::int64_t i = begin;
    for (; i + kNormLanes <= end; i += kNormLanes) {
#pragma GCC ivdep  // u and g are the same or do not overlap
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
    *norms++ = kernels::sum_of_lanes(lanes);
  }
}

// u[i] -= members * rounded[i].
ABT_INLINE void
subtract(float* u, const float* rounded, float members, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    u[i] = __builtin_fmaf(-members, rounded[i], u[i]);
  }
}

constexpr std::int64_t kTile = 2048;  // wire elements per tile

// Walks the wire. A run is what is contiguous in u, cut where a tile ends.
class Walk {
 public:
  Walk(const at::Tensor& indices, std::int64_t chunk, std::int64_t numel)
      : index_(indices.const_data_ptr<std::int32_t>()),
        count_(indices.numel()),
        chunk_(chunk),
        numel_(numel) {
    std::int64_t last = -1;
    for (std::int64_t j = 0; j < count_; ++j) {
      ABT_ASSERT(
          index_[j] > last && index_[j] * chunk < numel,
          "chunks: expected ascending indices within the tensor, got {} after "
          "{} in {} elements in chunks of {}",
          index_[j],
          last,
          numel,
          chunk);
      last = index_[j];
    }
  }
  // Calls run(at, place, valid, padding) for each run of the next `size` wire
  // elements: `at` is its offset in the tile, `place` its offset in u.
  template <class Run>
  void tile(std::int64_t size, const Run& run) {
    if (chunk_ == 1) {
      for (std::int64_t at = 0; at < size; ++at) {
        run(at, index_[j_++], std::integral_constant<std::int64_t, 1>(), 0);
      }
      return;
    }
    for (std::int64_t at = 0; at < size;) {
      const std::int64_t place = index_[j_] * chunk_ + inside_;
      const std::int64_t length = std::min(chunk_ - inside_, size - at);
      const std::int64_t valid =
          std::clamp<std::int64_t>(numel_ - place, 0, length);
      run(at, place, valid, length - valid);
      at += length;
      inside_ += length;
      if (inside_ == chunk_) {
        inside_ = 0;
        ++j_;
      }
    }
  }

 private:
  const std::int32_t* index_;
  std::int64_t count_;
  std::int64_t chunk_;
  std::int64_t numel_;
  std::int64_t j_ = 0;       // index of the chunk
  std::int64_t inside_ = 0;  // elements of it already done
};

}  // namespace

void add_with_norms_cpu(
    const at::Tensor& u,
    const at::Tensor& g,
    bool add,
    std::int64_t chunk,
    const at::Tensor& norms) {
  auto* const to = u.mutable_data_ptr<float>();
  const auto* const from = g.const_data_ptr<float>();
  auto* const out = norms.mutable_data_ptr<float>();
  compiled_for(best_simd(), [&]() ABT_INLINED {
    // Two loops instead of a branch in each iteration.
    if (add) {
      norms_of_chunks(to, from, true, u.numel(), chunk, out);
    } else {
      norms_of_chunks(to, from, false, u.numel(), chunk, out);
    }
  });
}

void take_chunks_cpu(
    const at::Tensor& u,
    const at::Tensor& indices,
    std::int64_t chunk,
    int members,
    const at::Tensor& wire) {
  auto* numbers = u.mutable_data_ptr<float>();
  auto* out = wire.mutable_data_ptr<c10::Half>();
  const float scale = 1.0f / static_cast<float>(members);
  std::array<float, kTile> scratch, scaled;
  Walk walk(indices, chunk, u.numel());
  for (std::int64_t begin = 0; begin < wire.numel(); begin += kTile) {
    const std::int64_t size = std::min(kTile, wire.numel() - begin);
    Walk back = walk;
    walk.tile(size, [&](auto at, auto place, auto valid, auto padding) {
      std::copy_n(numbers + place, valid, scratch.data() + at);
      std::fill_n(scratch.data() + at + valid, padding, 0.0f);
    });
    for (std::int64_t i = 0; i < size; ++i) {
      scaled[static_cast<std::size_t>(i)] =
          scratch[static_cast<std::size_t>(i)] * scale;
    }
    from_float(scaled.data(), out + begin, size);
    to_float(out + begin, scaled.data(), size);
    compiled_for(best_simd(), [&]() ABT_INLINED {
      subtract(
          scratch.data(), scaled.data(), static_cast<float>(members), size);
    });
    back.tile(size, [&](auto at, auto place, auto valid, auto) {
      std::copy_n(scratch.data() + at, valid, numbers + place);
    });
  }
}

void put_chunks_cpu(
    const at::Tensor& wire,
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& out,
    Put how) {
  const auto* in = wire.const_data_ptr<c10::Half>();
  auto* numbers = out.mutable_data_ptr<float>();
  std::array<float, kTile> scratch;
  Walk walk(indices, chunk, out.numel());
  for (std::int64_t begin = 0; begin < wire.numel(); begin += kTile) {
    const std::int64_t size = std::min(kTile, wire.numel() - begin);
    to_float(in + begin, scratch.data(), size);
    walk.tile(size, [&](auto at, auto place, auto valid, auto) {
      if (how == Put::Set) {
        std::copy_n(scratch.data() + at, valid, numbers + place);
        return;
      }
      for (std::int64_t i = 0; i < valid; ++i) {
        numbers[place + i] += scratch[static_cast<std::size_t>(at + i)];
      }
    });
  }
}

}  // namespace abtrain::ops
