// Counter-based random numbers for kernels (Philox4x32-10; Salmon et al., SC
// 2011): bit for bit the words of base/random.h, which kernels may not include.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// Replaces a counter by its block of four independent words.
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

// A stream of random words: the key of a seed and a purpose, and two numbers of
// its own.
struct RandomStream {
  std::uint32_t key[2] = {};
  std::uint32_t a = 0, b = 0;
};
// Writes the four words of block `index`.
ABT_HOST_DEVICE inline void random_block(
    const RandomStream& stream, std::int64_t index, std::uint32_t* words) {
  words[0] = static_cast<std::uint32_t>(index);
  words[1] = static_cast<std::uint32_t>(index >> 32);
  words[2] = stream.a;
  words[3] = stream.b;
  philox(stream.key, words);
}

// A sequence of numbers from the stream (seed, purpose, a, b).
class Random {
 public:
  ABT_HOST_DEVICE Random(
      std::uint64_t seed, std::uint32_t purpose, std::uint32_t a, std::uint32_t b)
      : stream_{
            {static_cast<std::uint32_t>(seed) ^ (purpose * 0x9E3779B1u),
             static_cast<std::uint32_t>(seed >> 32) ^ purpose},
            a,
            b} {}

  ABT_HOST_DEVICE std::uint32_t next() {
    if (used_ == 4) {
      random_block(stream_, blocks_++, words_);
      used_ = 0;
    }
    return words_[used_++];
  }
  // Uniform in 0 .. bound-1.
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

 private:
  RandomStream stream_;
  std::int64_t blocks_ = 0;  // so far
  std::uint32_t words_[4] = {};
  unsigned used_ = 4;
};

}  // namespace abtrain::kernels
