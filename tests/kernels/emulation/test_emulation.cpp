#include <gtest/gtest.h>

#include <stdexcept>
#include <tuple>
#include <vector>

#include "kernels/launch.cuh"

namespace abtrain::kernels {
namespace {

// Sums `count` numbers per block, by halves; thread 0 writes the sum.
void sum_kernel(const int* in, int* out, bool leave_early) {
  auto* shared = reinterpret_cast<int*>(shared_memory());
  const unsigned t = threadIdx.x;
  shared[t] = in[blockIdx.x * blockDim.x + t];
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t >= half && leave_early) {
      return;  // the others must not wait for it
    }
    if (t < half) {
      shared[t] += shared[t + half];
    }
  }
  if (t == 0) {
    out[blockIdx.x] = shared[0];
  }
}

TEST(Emulation, ThreadsOfABlockMeetAtBarriers) {
  constexpr int kBlocks = 3, kThreads = 64;
  std::vector<int> in(kBlocks * kThreads);
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<int>(i);
  }
  for (const bool leave_early : {false, true}) {
    std::vector<int> out(kBlocks);
    ASSERT_EQ(
        launch(
            sum_kernel, kBlocks, kThreads, kThreads * sizeof(int), nullptr, in.data(), out.data(),
            leave_early),
        0);
    for (int b = 0; b < kBlocks; ++b) {
      EXPECT_EQ(out[b], kThreads * (kThreads * b) + kThreads * (kThreads - 1) / 2);
    }
  }
}

// Counts the threads with an even and with an odd index.
void count_kernel(std::uint32_t* out) {
  auto* counters = reinterpret_cast<std::uint32_t*>(shared_memory());
  if (threadIdx.x < 2) {
    counters[threadIdx.x] = 0;
  }
  __syncthreads();
  increment(counters + threadIdx.x % 2);
  __syncthreads();
  if (threadIdx.x < 2) {
    out[threadIdx.x] = counters[threadIdx.x];
  }
}

TEST(Emulation, NoIncrementIsLost) {
  std::vector<std::uint32_t> out(2);
  ASSERT_EQ(launch(count_kernel, 1, 65, 2 * sizeof(std::uint32_t), nullptr, out.data()), 0);
  EXPECT_EQ(out, (std::vector<std::uint32_t>{33, 32}));
}

void index_kernel(unsigned* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = gridDim.x * 100 + blockIdx.x * 10 + threadIdx.x;
}

TEST(Emulation, EveryThreadKnowsItsPlace) {
  std::vector<unsigned> out(6);
  ASSERT_EQ(launch(index_kernel, 2, 3, 0, nullptr, out.data()), 0);
  EXPECT_EQ(out, (std::vector<unsigned>{200, 201, 202, 210, 211, 212}));
}

// What the shared memory holds at the begin of a block.
void fresh_kernel(unsigned char* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = shared_memory()[threadIdx.x];
  __syncthreads();
  shared_memory()[threadIdx.x] = 0;
}

TEST(Emulation, SharedMemoryIsUndefinedInEachBlock) {
  std::vector<unsigned char> out(8);
  ASSERT_EQ(launch(fresh_kernel, 2, 4, 4, nullptr, out.data()), 0);
  EXPECT_EQ(out, std::vector<unsigned char>(8, 0xff));
}

struct alignas(16) Sixteen {
  unsigned char bytes[16] = {};
};

void copy_kernel(const Sixteen* in, Sixteen* out, bool wait) {
  copy_16_bytes(shared_memory(), in);
  out[0] = *reinterpret_cast<const Sixteen*>(shared_memory());
  if (wait) {
    wait_for_copies();
  }
  out[1] = *reinterpret_cast<const Sixteen*>(shared_memory());
}

TEST(Emulation, ACopyIsThereOnlyAfterTheWait) {
  Sixteen in, out[2];
  in.bytes[3] = 7;
  ASSERT_EQ(launch(copy_kernel, 1, 1, 16, nullptr, &in, out, true), 0);
  EXPECT_EQ(out[0].bytes[3], 0xff);
  EXPECT_EQ(out[1].bytes[3], 7);
  EXPECT_THROW(launch(copy_kernel, 1, 1, 16, nullptr, &in, out, false), std::logic_error);
}

TEST(Emulation, RefusesWhatAGpuWouldRefuse) {
  unsigned out[1];
  for (const auto& [blocks, threads, shared] :
       {std::tuple(-1, 1, 0), std::tuple(1, 0, 0), std::tuple(1, 1025, 0),
        std::tuple(1, 1, 48 * 1024 + 1)}) {
    EXPECT_NE(
        launch(index_kernel, blocks, threads, static_cast<std::size_t>(shared), nullptr, out), 0);
  }
  unsigned char byte;
  EXPECT_THROW(launch(fresh_kernel, 1, 1, 0, nullptr, &byte), std::logic_error);
}

}  // namespace
}  // namespace abtrain::kernels
