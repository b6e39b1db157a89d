#include "kernels/codes/wire_codes.h"

#include "kernels/code_blocks.cuh"
#include "kernels/codes/wire_body.h"
#include "kernels/codes/wire_sparse.h"

namespace abtrain::kernels {

namespace {

// The team of the eight threads that process a chunk; a thread block processes 32 chunks.
class CudaChunkTeam {
 public:
  static constexpr int kLane = 4;
  static constexpr int kThreadsOfChunk = kNormLanes / kLane;
  static constexpr int kChunks = kThreads / kThreadsOfChunk;
  // The stride of a row (a chunk's lanes) in shared memory; one extra word puts rows into different
  // banks.
  static constexpr int kRow = kNormLanes + 1;

  struct Sums {
    float lanes[kChunks * kRow];
    int counts[kThreads];
  };

  __device__ explicit CudaChunkTeam(std::int64_t numel)
      : row_(static_cast<int>(threadIdx.x) / kThreadsOfChunk),
        lane_(static_cast<int>(threadIdx.x) % kThreadsOfChunk * kLane),
        chunk_(std::int64_t{blockIdx.x} * kChunks + row_) {
    const std::int64_t left = numel - chunk_ * kWireChunk;
    count_ = static_cast<int>(left < 0 ? 0 : left < kWireChunk ? left : kWireChunk);
  }

  __device__ std::int64_t chunk() const {
    return chunk_;
  }
  __device__ int count() const {
    return count_;
  }
  __device__ bool leads() const {
    return lane_ == 0;
  }

  __device__ void load(const float* from, int run, float (&x)[kLane]) const {
    load_first(from + chunk_ * kWireChunk + index(run), left(run), is_aligned(from, 16), x);
  }
  template <class Value>
  __device__ void store(float* to, int run, const Value& value) const {
    const float x[kLane] = {value(0), value(1), value(2), value(3)};
    store_first(to + chunk_ * kWireChunk + index(run), left(run), is_aligned(to, 16), x);
  }
  // A record's parts are padded to whole words, so whole words are read and written.
  __device__ void bytes(const std::uint8_t* from, int run, std::uint8_t (&x)[kLane]) const {
    load_first(from + index(run), left(run) > 0 ? kLane : 0, true, x);
  }
  template <class Value>
  __device__ void store_bytes(std::uint8_t* to, int run, const Value& value) const {
    if (left(run) > 0) {
      *reinterpret_cast<Bytes*>(to + index(run)) = Bytes{{value(0), value(1), value(2), value(3)}};
    }
  }

  __device__ std::int32_t largest(std::int32_t own) const {
    auto* const all = reinterpret_cast<std::int32_t*>(shared_memory());
    all[threadIdx.x] = own;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kThreadsOfChunk; ++i) {
      const std::int32_t other = all[row_ * kThreadsOfChunk + i];
      own = own < other ? other : own;
    }
    return own;
  }
  template <int kCall>
  __device__ SumAndCount sums(const float (&lanes)[kLane], int own) const {
    Sums& shared = reinterpret_cast<Sums*>(shared_memory())[kCall];
    float* const row = shared.lanes + row_ * kRow;
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      row[lane_ + v] = lanes[v];
    }
    shared.counts[threadIdx.x] = own;
    __syncthreads();
    float all[kNormLanes];
#pragma unroll
    for (int l = 0; l < kNormLanes; ++l) {
      all[l] = row[l];
    }
    int count = 0;
#pragma unroll
    for (int i = 0; i < kThreadsOfChunk; ++i) {
      count += shared.counts[row_ * kThreadsOfChunk + i];
    }
    return {sum_of_lanes(all), count};
  }

 private:
  using Bytes = Packet<std::uint8_t, kLane>;

  __device__ int index(int run) const {
    return run * kNormLanes + lane_;
  }
  // The chunk's elements from this thread's first element in the run on; 0 or less if none.
  __device__ int left(int run) const {
    return count_ - index(run);
  }

  int row_;
  int lane_;
  std::int64_t chunk_;
  int count_;
};

template <int kBits>
__global__ void __launch_bounds__(kThreads) encode_kernel(const EncodeWire job) {
  CudaChunkTeam team(job.layout.numel);
  encode_chunk<kBits>(team, job);
}

template <int kBits>
__global__ void __launch_bounds__(kThreads) decode_kernel(const DecodeWire job) {
  decode_chunk<kBits>(CudaChunkTeam(job.layout.numel), job);
}

template <class Job>
int launch_chunks(void (*kernel)(Job), std::size_t shared_bytes, const Job& job, void* stream) {
  constexpr int kChunks = CudaChunkTeam::kChunks;
  return launch(
      kernel, (wire_chunks(job.layout) + kChunks - 1) / kChunks, kThreads, shared_bytes, stream,
      job);
}

}  // namespace

int encode_wire(const EncodeWire& job, void* stream) {
  constexpr std::size_t kLargest = kThreads * sizeof(std::int32_t);
  constexpr std::size_t kSums = 2 * sizeof(CudaChunkTeam::Sums);
  switch (job.layout.code) {
    case WireCode::Int8:
      return launch_chunks(encode_kernel<8>, kLargest, job, stream);
    case WireCode::Int4:
      return launch_chunks(encode_kernel<4>, kLargest, job, stream);
    case WireCode::Int2:
      return launch_chunks(encode_kernel<2>, kSums, job, stream);
    case WireCode::Sparse:
      break;
  }
  return encode_sparse(job, stream);
}

int decode_wire(const DecodeWire& job, void* stream) {
  switch (job.layout.code) {
    case WireCode::Int8:
      return launch_chunks(decode_kernel<8>, 0, job, stream);
    case WireCode::Int4:
      return launch_chunks(decode_kernel<4>, 0, job, stream);
    case WireCode::Int2:
      return launch_chunks(decode_kernel<2>, 0, job, stream);
    case WireCode::Sparse:
      break;
  }
  return decode_sparse(job, stream);
}

}  // namespace abtrain::kernels
