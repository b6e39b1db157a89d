#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>

#include "kernels/codes/quantize.h"
#include "ops/cpu/hadamard.h"
#include "ops/cpu/random_words.h"
#include "ops/cpu/simd.h"

namespace abtrain::ops {

namespace {

using kernels::BlockCoding;
using kernels::Lanes;

// Elements are coded in runs of this length, which stay in the first-level cache.
constexpr std::int64_t kRun = 1024;

// Calls use(i, sign) for each i < count. Bit 31 of `sign` is the sign of element i, which is stored
// in bit i % 32 of signs[i / 32].
template <class Use>
ABT_INLINE void for_signs(const std::uint32_t* signs, std::int64_t count, const Use& use) {
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const std::uint32_t word = signs[i / 32];
    for (int j = 0; j < 32; ++j) {
      use(i + j, word << (31 - j));
    }
  }
  for (; i < count; ++i) {
    use(i, signs[i / 32] << (31 - i % 32));
  }
}

// out[i] = in[i] * value, negated if the sign bit of element i is set.
ABT_INLINE void apply_signs(
    const float* in, const std::uint32_t* signs, float value, std::int64_t count, float* out) {
  for_signs(signs, count, [=](std::int64_t i, std::uint32_t sign) ABT_INLINED {
    out[i] = kernels::signed_by(value, sign) * in[i];
  });
}

// u[i] -= in[i] * value, negated if the sign bit of element i is set.
ABT_INLINE void subtract_signed(
    const float* in, const std::uint32_t* signs, float value, std::int64_t count, float* u) {
  for_signs(signs, count, [=](std::int64_t i, std::uint32_t sign) ABT_INLINED {
    u[i] = ::fmaf(-kernels::signed_by(value, sign), in[i], u[i]);
  });
}

// Reads random words as their 16-bit halves, the low half first.
typedef std::uint16_t HalfWord __attribute__((may_alias));

// Writes the codes of x and replaces x by the decoded values, in steps of one code.
ABT_INLINE void code(
    float* x, const HalfWord* random, float scale, float limit, float offset, std::int64_t count,
    std::uint8_t* codes) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t k = kernels::code_of(x[i], scale, limit, offset, random[i]);
    codes[i] = static_cast<std::uint8_t>(k);
    x[i] = static_cast<float>(static_cast<std::int32_t>(k)) - offset;
  }
}

// Packs two neighboring codes into each lane.
template <class Lane, int kShift>
ABT_INLINE void pack_pairs(const std::uint8_t* codes, std::int64_t count, Lane* out) {
  for (std::int64_t i = 0; i < count / 2; ++i) {
    out[i] = static_cast<Lane>(codes[2 * i] | codes[2 * i + 1] << kShift);
  }
}
ABT_INLINE void pack(
    const std::uint8_t* codes, std::int64_t begin, std::int64_t count, Lanes lanes, void* out) {
  if (lanes == Lanes::Byte) {
    std::copy_n(codes, count, static_cast<std::uint8_t*>(out) + begin);
  } else if (lanes == Lanes::Nibble) {
    pack_pairs<std::uint8_t, 4>(codes, count, static_cast<std::uint8_t*>(out) + begin / 2);
  } else {
    pack_pairs<std::int32_t, 16>(codes, count, static_cast<std::int32_t*>(out) + begin / 2);
  }
}

template <int kBits, class Lane>
ABT_INLINE void unpack_pairs(const Lane* in, std::int64_t count, float zero, float* x) {
  constexpr int kMask = (1 << kBits) - 1;
  for (std::int64_t i = 0; i < count / 2; ++i) {
    const int lane = in[i];
    x[2 * i] = static_cast<float>(lane & kMask) - zero;
    x[2 * i + 1] = static_cast<float>(lane >> kBits & kMask) - zero;
  }
}
// `begin` is the index of the first code.
ABT_INLINE void unpack(
    const void* in, std::int64_t begin, std::int64_t count, Lanes lanes, float zero, float* x) {
  const auto* const bytes = static_cast<const std::uint8_t*>(in);
  if (lanes == Lanes::Byte) {
    for (std::int64_t i = 0; i < count; ++i) {
      x[i] = static_cast<float>(int{bytes[begin + i]}) - zero;
    }
  } else if (lanes == Lanes::Nibble) {
    unpack_pairs<4>(bytes + begin / 2, count, zero, x);
  } else {
    unpack_pairs<16>(static_cast<const std::int32_t*>(in) + begin / 2, count, zero, x);
  }
}

// Encodes or decodes one unit at a time. Holds the unit's elements and signs.
class Unit {
 public:
  explicit Unit(const BlockCoding& c)
      : c_(c),
        size_(kernels::unit_of(c.log_size)),
        block_(std::int64_t{1} << c.log_size),
        x_(memory(size_)),
        signs_(memory(size_ / 32)) {
    if (!c_.rotate) {
      std::fill_n(signs(), size_ / 32, 0u);
    }
  }

  void encode(std::int64_t unit, const kernels::Quantize& job) {
    start(unit);
    vectorized([&]() ABT_INLINED { apply_signs(job.u + begin_, signs(), 1.0f, present_, x()); });
    std::fill(x() + present_, x() + size_, 0.0f);
    rotate();
    const std::int64_t run = std::min(size_, kRun);
    for (std::int64_t from = 0; from < size_; from += run) {
      make_codes(from, run, job.codes);
    }
    if (!job.residual) {
      return;
    }
    rotate();
    each_block([&](std::int64_t at, std::int64_t count, float range) {
      const float value = kernels::code_value(range, c_.limit, c_.log_size, c_.rotate, 1.0f);
      float* const u = job.u + begin_ + at;
      if (value != value) {
        // A block that is not finite leaves a residual of 0; its estimate is NaN.
        std::fill_n(u, count, 0.0f);
        return;
      }
      signed_run(at, [&](const std::uint32_t* signs) {
        vectorized([&]() ABT_INLINED { subtract_signed(x() + at, signs, value, count, u); });
      });
    });
  }

  void decode(std::int64_t unit, const kernels::Dequantize& job) {
    start(unit);
    const std::int64_t units = (c_.blocks << c_.log_size) / size_;
    const std::int64_t tails = job.shards > 1 ? kernels::shard_of(unit, units, job.shards) : 0;
    const auto* const codes =
        static_cast<const std::uint8_t*>(job.codes) + tails * kernels::kTailBytes;
    vectorized([&]() ABT_INLINED { unpack(codes, begin_, size_, c_.lanes, job.zero, x()); });
    rotate();
    each_block([&](std::int64_t at, std::int64_t count, float range) {
      const float value = kernels::code_value(range, c_.limit, c_.log_size, c_.rotate, job.members);
      float* const out = job.out + begin_ + at;
      signed_run(at, [&](const std::uint32_t* signs) {
        vectorized([&]() ABT_INLINED { apply_signs(x() + at, signs, value, count, out); });
      });
    });
  }

 private:
  static c10::DataPtr memory(std::int64_t words) {
    return c10::GetCPUAllocator()->allocate(static_cast<std::size_t>(words) * sizeof(float));
  }
  float* x() {
    return static_cast<float*>(x_.get());
  }
  std::uint32_t* signs() {
    return static_cast<std::uint32_t*>(signs_.get());
  }

  void start(std::int64_t unit) {
    begin_ = unit * size_;
    present_ = std::clamp<std::int64_t>(c_.numel - begin_, 0, size_);
    if (c_.rotate) {
      random_words(c_.signs, (c_.first + begin_) / kernels::kUnit, size_ / kernels::kUnit, signs());
    }
  }

  void rotate() {
    for (std::int64_t at = 0; c_.rotate && at < size_; at += block_) {
      hadamard_block(x() + at, c_.log_size);
    }
  }

  void make_codes(std::int64_t from, std::int64_t count, void* codes) {
    alignas(32) std::uint32_t random[kRun / 2];
    std::uint8_t made[kRun];
    random_words(c_.rounding, (c_.first + begin_ + from) / 8, count / 8, random);
    const auto* const halves = reinterpret_cast<const HalfWord*>(random);
    vectorized([&]() ABT_INLINED {
      for (std::int64_t i = 0; i < count;) {
        const std::int64_t part = std::min(count - i, block_);
        const float scale =
            kernels::code_scale(range_at(from + i), c_.limit, c_.log_size, c_.rotate);
        code(x() + from + i, halves + i, scale, c_.limit, c_.offset, part, made + i);
        i += part;
      }
      pack(made, begin_ + from, count, c_.lanes, codes);
    });
  }

  float range_at(std::int64_t at) const {
    return c_.ranges[(begin_ + at) >> c_.log_size];
  }

  // Calls f(offset in the unit, elements present, range) for each block.
  template <class F>
  void each_block(const F& f) {
    for (std::int64_t at = 0; at < present_; at += block_) {
      f(at, std::min(block_, present_ - at), range_at(at));
    }
  }

  // Calls f(signs) with the signs of the elements from `at` on, starting at the
  // first bit.
  template <class F>
  void signed_run(std::int64_t at, const F& f) {
    if (at % 32 == 0) {
      f(signs() + at / 32);
      return;
    }
    // A block of fewer than 32 elements does not cross a word.
    const std::uint32_t word = signs()[at / 32] >> (at % 32);
    f(&word);
  }

  const BlockCoding& c_;
  const std::int64_t size_;   // elements in the unit
  const std::int64_t block_;  // elements in a block
  std::int64_t begin_ = 0;
  std::int64_t present_ = 0;
  // From the allocator of CPU tensors: it keeps freed blocks, so that a large unit's memory is not
  // mapped anew.
  c10::DataPtr x_;
  c10::DataPtr signs_;  // 0 without a rotation
};

template <class F>
void for_units(const BlockCoding& c, const F& f) {
  const std::int64_t size = kernels::unit_of(c.log_size);
  at::parallel_for(
      0, (c.blocks << c.log_size) / size, std::max<std::int64_t>(1, 65536 / size),
      [&](std::int64_t begin, std::int64_t end) {
        Unit unit(c);
        for (std::int64_t u = begin; u < end; ++u) {
          f(unit, u);
        }
      });
}

}  // namespace

}  // namespace abtrain::ops

namespace abtrain::kernels {

using namespace ops;

void work_on_host(const Quantize& job) {
  for_units(job.coding, [&](Unit& unit, std::int64_t u) { unit.encode(u, job); });
}
void work_on_host(const Dequantize& job) {
  for_units(job.coding, [&](Unit& unit, std::int64_t u) { unit.decode(u, job); });
}

}  // namespace abtrain::kernels
