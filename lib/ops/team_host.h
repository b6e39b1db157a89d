// The Team that processes a block (kernels/team.h) in one host thread, the loop over blocks, and
// the dispatch of an op to a GPU or the host:
//
//   dispatch("pack_sums", job, device, kernels::pack_sums);
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/team.h"
#include "ops/cpu/code_blocks.h"
#include "ops/cpu/random_words.h"
#include "ops/launch.h"

namespace abtrain::kernels {

// kWhole: the block has kBlock elements, so that units need no branch for missing elements.
template <bool kWhole>
class HostTeam {
 public:
  static constexpr int kUnit = kGroup;
  static constexpr int kUnits = kBlock / kUnit;

  template <class Use>
  ABT_INLINE void for_units(const CodeBlock& block, const Use& use) const {
    const int groups = kWhole ? kUnits : static_cast<int>(groups_of(block));
    for (int unit = 0; unit < groups; ++unit) {
      use(unit, unit);
    }
  }
  ABT_INLINE std::uint32_t bits(const std::uint32_t* words, int unit) const {
    return words[unit];
  }
  ABT_INLINE void store_bits(std::uint32_t* words, int unit, std::uint32_t bits) const {
    words[unit] = bits;
  }
  ABT_INLINE void load(const float* from, int unit, std::int64_t count, float (&x)[kUnit]) const {
    ops::load_first<kUnit>(from + unit * kUnit, left(unit, count), x);
  }
  template <class Value>
  ABT_INLINE void store(float* to, int unit, std::int64_t count, const Value& value) const {
    ops::store_first<kUnit>(to + unit * kUnit, left(unit, count), value);
  }
  ABT_INLINE void bytes(
      const std::uint8_t* from, int unit, std::int64_t count, std::uint8_t (&x)[kUnit]) const {
    ops::load_first<kUnit>(from + unit * kUnit, left(unit, count), x);
  }
  template <class Value>
  ABT_INLINE void store_bytes(
      std::uint8_t* to, int unit, std::int64_t count, const Value& value) const {
    ops::store_first<kUnit>(to + unit * kUnit, left(unit, count), value);
  }
  ABT_INLINE void two_bits(
      const std::uint8_t* from, int unit, std::int64_t count, std::uint32_t (&codes)[kUnit]) const {
    const std::int64_t exist = left(unit, count);
    std::uint8_t scratch[kCodeBytes] = {};
    const std::uint8_t* at = from + kCodeBytes * unit;
    if (exist < kUnit) {
      std::copy_n(at, packed_bytes(exist), scratch);
      at = scratch;
    }
    for (int begin = 0; begin < kUnit; begin += kSixteen) {
      std::uint32_t word;
      std::memcpy(&word, at + begin / 4, sizeof(word));
#pragma GCC unroll 1
      for (int k = 0; k < kSixteen; ++k) {
        codes[begin + k] = word >> kShift[k] & 3;
      }
    }
  }
  ABT_INLINE void store_two_bits(
      std::uint8_t* to, int unit, std::int64_t count, const std::uint32_t (&codes)[kUnit]) const {
    const std::int64_t exist = left(unit, count);
    std::uint8_t scratch[kCodeBytes];
    std::uint8_t* const own = to + kCodeBytes * unit;
    std::uint8_t* const at = exist < kUnit ? scratch : own;
    for (int begin = 0; begin < kUnit; begin += kSixteen) {
      std::uint32_t word = 0;
#pragma GCC unroll 1
      for (int k = 0; k < kSixteen; ++k) {
        word |= codes[begin + k] << kShift[k];
      }
      std::memcpy(at + begin / 4, &word, sizeof(word));
    }
    if (exist < kUnit) {
      std::copy_n(scratch, packed_bytes(exist), own);
    }
  }
  ABT_INLINE void random(
      const RandomStream& stream, std::int64_t first, int unit,
      std::uint32_t (&words)[kUnit]) const {
    ops::random_words(stream, (first + unit * kUnit) / 4, kUnit / 4, words);
  }

 private:
  ABT_INLINE std::int64_t left(int unit, std::int64_t count) const {
    return kWhole ? kUnit : count - unit * kUnit;
  }

  static constexpr int kCodeBytes = kUnit / 4;  // bytes of a unit's two-bit codes
  // The bits at which a word's sixteen two-bit codes begin; a table, so that the compiler
  // vectorizes the shifts.
  static constexpr int kSixteen = 16;
  static constexpr std::array<int, kSixteen> kShift = [] {
    std::array<int, kSixteen> shift{};
    for (int k = 0; k < kSixteen; ++k) {
      shift[static_cast<std::size_t>(k)] = shift_of(k);
    }
    return shift;
  }();
};

// Does the work of all blocks of the job.
template <class Job>
void work_on_host(const Job& job) {
  ops::for_blocks(job.count, [&job](std::int64_t b) ABT_INLINED {
    if (job.blocks[b].count == kBlock) {
      HostTeam<true> team;
      work(team, job, b);
    } else {
      HostTeam<false> team;
      work(team, job, b);
    }
  });
}

}  // namespace abtrain::kernels

namespace abtrain::ops {

// Does the job on a GPU or on the host. On the host, it calls the work_on_host() that the job's
// header declares, or else the template above, which runs the body shared with the GPU.
template <class Job>
void dispatch(
    const char* op, const Job& job, c10::Device device, int (*on_gpu)(const Job&, void* stream)) {
  if (takes_kernels(device)) {
    launch(op, device, [&](void* stream) { return on_gpu(job, stream); });
  } else {
    work_on_host(job);
  }
}

}  // namespace abtrain::ops
