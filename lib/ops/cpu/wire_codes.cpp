#include "kernels/codes/wire_codes.h"

#include "kernels/codes/wire_body.h"
#include "kernels/codes/wire_sparse.h"
#include "ops/cpu/code_blocks.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

// A host thread, with all lanes of a chunk.
class HostChunkTeam {
 public:
  static constexpr int kLane = kNormLanes;

  ABT_INLINE HostChunkTeam(std::int64_t numel, std::int64_t chunk)
      : chunk_(chunk), count_(static_cast<int>(std::min(kWireChunk, numel - chunk * kWireChunk))) {}

  ABT_INLINE std::int64_t chunk() const {
    return chunk_;
  }
  ABT_INLINE int count() const {
    return count_;
  }
  ABT_INLINE bool leads() const {
    return true;
  }

  ABT_INLINE void load(const float* from, int run, float (&x)[kLane]) const {
    load_first<kLane>(from + chunk_ * kWireChunk + run * kLane, left(run), x);
  }
  template <class Value>
  ABT_INLINE void store(float* to, int run, const Value& value) const {
    store_first<kLane>(to + chunk_ * kWireChunk + run * kLane, left(run), value);
  }
  // A record's parts are filled up to words, so that a word is never cut.
  ABT_INLINE void bytes(const std::uint8_t* from, int run, std::uint8_t (&x)[kLane]) const {
    load_first<kLane>(from + run * kLane, left(run), x);
  }
  template <class Value>
  ABT_INLINE void store_bytes(std::uint8_t* to, int run, const Value& value) const {
    store_first<kLane>(to + run * kLane, fill_words(left(run)), value);
  }

  ABT_INLINE std::int32_t largest(std::int32_t own) const {
    return own;
  }
  template <int kCall>
  ABT_INLINE SumAndCount sums(float (&lanes)[kLane], int own) const {
    return {sum_of_lanes(lanes), own};
  }

 private:
  ABT_INLINE int left(int run) const {
    return std::clamp(count_ - run * kLane, 0, kLane);
  }

  std::int64_t chunk_;
  int count_;
};

constexpr std::int64_t kGrain = 256;  // chunks worth a thread

template <int kBits>
void encode_chunks(const EncodeWire& job) {
  for_blocks(
      wire_chunks(job.layout),
      [&](std::int64_t c) ABT_INLINED {
        HostChunkTeam team(job.layout.numel, c);
        encode_chunk<kBits>(team, job);
      },
      kGrain);
}

template <int kBits>
void decode_chunks(const DecodeWire& job) {
  for_blocks(
      wire_chunks(job.layout),
      [&](std::int64_t c)
          ABT_INLINED { decode_chunk<kBits>(HostChunkTeam(job.layout.numel, c), job); },
      kGrain);
}

}  // namespace

void work_on_host(const EncodeWire& job) {
  switch (job.layout.code) {
    case WireCode::Int8:
      return encode_chunks<8>(job);
    case WireCode::Int4:
      return encode_chunks<4>(job);
    case WireCode::Int2:
      return encode_chunks<2>(job);
    case WireCode::Sparse:
      return encode_sparse_on_host(job);
  }
}

void work_on_host(const DecodeWire& job) {
  switch (job.layout.code) {
    case WireCode::Int8:
      return decode_chunks<8>(job);
    case WireCode::Int4:
      return decode_chunks<4>(job);
    case WireCode::Int2:
      return decode_chunks<2>(job);
    case WireCode::Sparse:
      return decode_sparse_on_host(job);
  }
}

}  // namespace abtrain::kernels
