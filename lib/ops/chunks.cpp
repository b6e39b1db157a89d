#include "ops/chunks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "kernels/blocks/chunk_norm.h"
#include "kernels/blocks/chunks.h"
#include "ops/cpu/convert.h"
#include "ops/cpu/simd.h"
#include "ops/flat_check.h"
#include "ops/launch.h"

namespace abtrain::ops {

namespace {

using kernels::kNormLanes;

// Vectorized where the target allows; __builtin_fmaf is then one instruction.
ABT_INLINE void norms_of_chunks(
    float* u, const float* g, bool add, std::int64_t numel, std::int64_t chunk, float* norms) {
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
ABT_INLINE void subtract(float* u, const float* rounded, float members, std::int64_t count) {
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
          index_[j], last, numel, chunk);
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
      const std::int64_t valid = std::clamp<std::int64_t>(numel_ - place, 0, length);
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

void add_with_norms_on_host(
    const at::Tensor& u, const at::Tensor& g, bool add, std::int64_t chunk,
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

void take_chunks_on_host(
    const at::Tensor& u, const at::Tensor& indices, std::int64_t chunk, int members,
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
      scaled[static_cast<std::size_t>(i)] = scratch[static_cast<std::size_t>(i)] * scale;
    }
    from_float(scaled.data(), out + begin, size);
    to_float(out + begin, scaled.data(), size);
    compiled_for(best_simd(), [&]() ABT_INLINED {
      subtract(scratch.data(), scaled.data(), static_cast<float>(members), size);
    });
    back.tile(size, [&](auto at, auto place, auto valid, auto) {
      std::copy_n(scratch.data() + at, valid, numbers + place);
    });
  }
}

void put_chunks_on_host(
    const at::Tensor& wire, const at::Tensor& indices, std::int64_t chunk, const at::Tensor& out,
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

kernels::Chunks chunks_of(
    const at::Tensor& indices, std::int64_t chunk, const at::Tensor& numbers) {
  return {indices.const_data_ptr<std::int32_t>(), indices.numel(), chunk, numbers.numel()};
}

void check_chunks(
    const char* name, const at::Tensor& numbers, const at::Tensor& indices, std::int64_t chunk,
    const at::Tensor& wire) {
  const c10::Device device = numbers.device();
  check_flat(numbers, at::kFloat, 0, device, name);
  check_flat(indices, at::kInt, 0, device, name);
  check_flat(wire, at::kHalf, 0, device, name);
  ABT_ASSERT(
      chunk >= 1 && wire.numel() == indices.numel() * chunk &&
          wire.numel() <= std::numeric_limits<std::int32_t>::max() / 2 &&
          indices.numel() <= chunk_count(numbers.numel(), chunk),
      "{}: {} chunks of {} of {} elements do not fill a wire of {}", name, indices.numel(), chunk,
      numbers.numel(), wire.numel());
}

}  // namespace

void add_with_norms(
    const at::Tensor& u, const at::Tensor& g, bool add, std::int64_t chunk,
    const at::Tensor& norms) {
  check_flat(u, at::kFloat, 0, u.device(), "add_with_norms: u");
  check_flat(g, at::kFloat, 0, u.device(), "add_with_norms: g");
  check_flat(norms, at::kFloat, 0, u.device(), "add_with_norms: norms");
  ABT_ASSERT(
      chunk >= 1 && u.numel() == g.numel() && norms.numel() == chunk_count(u.numel(), chunk),
      "add_with_norms: {} and {} elements in chunks of {} do not make {} norms", u.numel(),
      g.numel(), chunk, norms.numel());
  if (u.numel() == 0) {
    return;
  }
  if (u.is_cuda()) {
    launch("add_with_norms", u.device(), [&](void* stream) {
      return kernels::add_with_norms(
          u.mutable_data_ptr<float>(), g.const_data_ptr<float>(), add, u.numel(), chunk,
          norms.mutable_data_ptr<float>(), stream);
    });
  } else {
    add_with_norms_on_host(u, g, add, chunk, norms);
  }
}

void take_chunks(
    const at::Tensor& u, const at::Tensor& indices, std::int64_t chunk, int members,
    const at::Tensor& wire) {
  check_chunks("take_chunks", u, indices, chunk, wire);
  ABT_ASSERT(members >= 1, "take_chunks: {} members", members);
  if (wire.numel() == 0) {
    return;
  }
  if (u.is_cuda()) {
    launch("take_chunks", u.device(), [&](void* stream) {
      return kernels::take_chunks(
          chunks_of(indices, chunk, u), u.mutable_data_ptr<float>(), members,
          wire.mutable_data_ptr(), stream);
    });
  } else {
    take_chunks_on_host(u, indices, chunk, members, wire);
  }
}

void put_chunks(
    const at::Tensor& wire, const at::Tensor& indices, std::int64_t chunk, const at::Tensor& out,
    Put how) {
  check_chunks("put_chunks", out, indices, chunk, wire);
  if (wire.numel() == 0) {
    return;
  }
  if (out.is_cuda()) {
    launch("put_chunks", out.device(), [&](void* stream) {
      return kernels::put_chunks(
          chunks_of(indices, chunk, out), wire.const_data_ptr(), out.mutable_data_ptr<float>(),
          how == Put::Add, stream);
    });
  } else {
    put_chunks_on_host(wire, indices, chunk, out, how);
  }
}

}  // namespace abtrain::ops
