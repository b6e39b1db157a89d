#include "kernels/codes/wire_codes.h"

#include "kernels/codes/wire_body.h"
#include "kernels/codes/wire_sparse.h"
#include "ops/cpu/code_blocks.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

// The ChunkTeam that processes a chunk (kernels/codes/wire_body.h) on the host: one thread, which
// holds all lanes. kWhole: the chunk has kWireChunk elements, so that runs need no branch for
// missing elements.
template <bool kWhole>
class HostChunkTeam {
 public:
  static constexpr int kLane = kNormLanes;

  ABT_INLINE HostChunkTeam(std::int64_t chunk, int count) : chunk_(chunk), count_(count) {}

  ABT_INLINE std::int64_t chunk() const {
    return chunk_;
  }
  ABT_INLINE int count() const {
    return kWhole ? static_cast<int>(kWireChunk) : count_;
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
  // A record's parts are padded to whole words, so store_bytes() fills the last word.
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
    return kWhole ? kLane : std::clamp(count_ - run * kLane, 0, kLane);
  }

  std::int64_t chunk_;
  int count_;
};

constexpr std::int64_t kGrain = 256;  // chunks worth a thread

// Calls use(team) for each chunk.
template <class Use>
void for_chunks(const WireLayout& layout, const Use& use) {
  for_blocks(
      wire_chunks(layout),
      [&](std::int64_t c) ABT_INLINED {
        const std::int64_t left = layout.numel - c * kWireChunk;
        if (left >= kWireChunk) {
          use(HostChunkTeam<true>(c, kWireChunk));
        } else {
          use(HostChunkTeam<false>(c, static_cast<int>(left)));
        }
      },
      kGrain);
}

template <int kBits>
void encode_chunks(const EncodeWire& job) {
  for_chunks(job.layout, [&](auto team) ABT_INLINED { encode_chunk<kBits>(team, job); });
}

template <int kBits>
void decode_chunks(const DecodeWire& job) {
  for_chunks(job.layout, [&](const auto& team) ABT_INLINED { decode_chunk<kBits>(team, job); });
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
