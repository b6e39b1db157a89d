// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A number is a pure function of (seed, purpose, a, b, counter), so neither the
// order of evaluation nor the thread matters, and a GPU kernel produces the same numbers as the
// CPU.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// The uses of random numbers. The purpose is part of a stream's key.
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
  Generate = 11,  // 10 is reserved (removed message format)
  Adapters = 12,
};

// Replaces the counter by four independent random words, called a block.
ABT_HOST_DEVICE inline void philox(const std::uint32_t key[2], std::uint32_t counter[4]) {
  std::uint32_t c0 = counter[0], c1 = counter[1];
  std::uint32_t c2 = counter[2], c3 = counter[3];
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  counter[0] = c0;
  counter[1] = c1;
  counter[2] = c2;
  counter[3] = c3;
}

// Identifies a stream of random words: the key combines seed and purpose; a and b number the
// streams with one key.
struct RandomStream {
  std::uint32_t key[2] = {};
  std::uint32_t a = 0, b = 0;
};
ABT_HOST_DEVICE inline RandomStream random_stream(
    std::uint64_t seed, RandomPurpose purpose, std::uint32_t a, std::uint32_t b) {
  const auto number = static_cast<std::uint32_t>(purpose);
  return {
      {static_cast<std::uint32_t>(seed) ^ (number * 0x9E3779B1u),
       static_cast<std::uint32_t>(seed >> 32) ^ number},
      a,
      b};
}
// Writes words 4 * index .. 4 * index + 3 of the stream.
ABT_HOST_DEVICE inline void random_block(
    const RandomStream& stream, std::int64_t index, std::uint32_t* words) {
  words[0] = static_cast<std::uint32_t>(index);
  words[1] = static_cast<std::uint32_t>(index >> 32);
  words[2] = stream.a;
  words[3] = stream.b;
  philox(stream.key, words);
}

// A sequence of numbers from the stream (seed, purpose, a, b), for example with
// a = the epoch and b = the worker or example. The sequence repeats after 2^66
// words.
class Random {
 public:
  ABT_HOST_DEVICE Random(
      std::uint64_t seed, RandomPurpose purpose, std::uint32_t a = 0, std::uint32_t b = 0)
      : stream_(random_stream(seed, purpose, a, b)) {}

  // Uniform over all 32-bit words.
  ABT_HOST_DEVICE std::uint32_t next() {
    if (used_ == 4) {
      random_block(stream_, blocks_++, words_);
      used_ = 0;
    }
    return words_[used_++];
  }
  ABT_HOST_DEVICE std::uint64_t next_64() {
    const std::uint64_t high = next();
    return high << 32 | next();
  }
  // Uniform in 0 .. bound-1 (bound >= 1), by a multiplication and a shift
  // (Lemire 2019, without rejection: the bias is below 2^-32 * bound).
  ABT_HOST_DEVICE std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{next()} * bound) >> 32);
  }
  // Uniform in [0, 1), with 24 random bits.
  ABT_HOST_DEVICE float uniform() {
    return static_cast<float>(next() >> 8) * 0x1.0p-24f;
  }
  ABT_HOST_DEVICE bool coin() {
    return (next() >> 31) != 0;
  }
  // Returns a generator of the same sequence that continues at word 4 * blocks.
  ABT_HOST_DEVICE Random from_block(std::int64_t blocks) const {
    Random later = *this;
    later.blocks_ = blocks;
    later.used_ = 4;
    return later;
  }

 private:
  RandomStream stream_;
  std::int64_t blocks_ = 0;  // number begun
  std::uint32_t words_[4] = {};
  unsigned used_ = 4;
};

}  // namespace abtrain::kernels
