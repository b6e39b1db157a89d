// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). A number is a pure function of
// (seed, purpose, a, b, counter), so neither the order of evaluation nor the
// thread matters, and a GPU kernel can produce the same bits.
#pragma once

#include <array>
#include <cstdint>

namespace abtrain {

// What a stream of random numbers is used for. The purpose is part of the key.
enum class RandomPurpose : std::uint32_t {
  Initialize = 1,
  Shuffle = 2,
  Augment = 3,
  Dropout = 4,
  Validation = 5,
  Test = 6,
  Sketch = 7,
  Signs = 8,
  Rounding = 9,
  Orders = 10,
  Generate = 11,
};

// One block: four independent 32-bit words.
inline std::array<std::uint32_t, 4> philox(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

inline std::array<std::uint32_t, 2> random_key(std::uint64_t seed, RandomPurpose purpose) {
  return {
      static_cast<std::uint32_t>(seed) ^ (static_cast<std::uint32_t>(purpose) * 0x9E3779B1u),
      static_cast<std::uint32_t>(seed >> 32) ^ static_cast<std::uint32_t>(purpose)};
}

// A sequence of numbers from the stream (seed, purpose, a, b), for example with
// a = the epoch and b = the worker or example. The sequence repeats after 2^66
// words.
class Random {
 public:
  Random(std::uint64_t seed, RandomPurpose purpose, std::uint32_t a = 0, std::uint32_t b = 0)
      : key_(random_key(seed, purpose)), counter_{0, 0, a, b} {}

  // Uniform over all 32-bit words.
  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox(counter_, key_);
      if (++counter_[0] == 0) {
        ++counter_[1];
      }
      used_ = 0;
    }
    return block_[used_++];
  }
  std::uint64_t next_64() {
    const std::uint64_t high = next();
    return high << 32 | next();
  }
  // Uniform in 0 .. bound-1 (bound >= 1), by a multiplication and a shift
  // (Lemire 2019, without rejection: the bias is below 2^-32 * bound).
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{next()} * bound) >> 32);
  }
  // Uniform in [0, 1), with 24 random bits.
  float uniform() {
    return static_cast<float>(next() >> 8) * 0x1.0p-24f;
  }
  bool coin() {
    return (next() >> 31) != 0;
  }
  // The same sequence from its word 4 * blocks on (below 2^34).
  Random from_block(std::uint32_t blocks) const {
    Random later = *this;
    later.counter_[0] = blocks;
    later.counter_[1] = 0;
    later.used_ = 4;
    return later;
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  unsigned used_ = 4;
};

}  // namespace abtrain
