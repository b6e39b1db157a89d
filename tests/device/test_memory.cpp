#include "device/memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <thread>
#include <vector>

namespace abtrain::device {
namespace {

#ifndef __SANITIZE_ADDRESS__

at::Tensor bytes(std::int64_t count) {
  return at::empty({count}, at::kByte);
}

class TensorMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    keep_freed_memory();
  }
};

TEST_F(TensorMemory, IsAlignedAndOwnedByOneTensor) {
  std::vector<at::Tensor> all;
  for (std::int64_t size = 1; size < (std::int64_t{1} << 23); size = size * 5 / 4 + 1) {
    all.push_back(at::full({size}, static_cast<int>(all.size()), at::kByte));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back().data_ptr()) % 64, 0) << size;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].min().item<int>(), i);
    EXPECT_EQ(all[i].max().item<int>(), i);
  }
}

TEST_F(TensorMemory, FreedBlocksServeTheirSizeClass) {
  const std::vector<at::Tensor> held = {bytes(200'000'000), bytes(200'000'000), bytes(200'000'000)};
  for (const std::int64_t size : {1000, 100'000, 3'000'000, 100'000'000}) {
    const void* const first = bytes(size).data_ptr();
    EXPECT_EQ(bytes(size - size / 64).data_ptr(), first) << size;
    const at::Tensor larger = bytes(size * 5 / 4);
    EXPECT_NE(larger.data_ptr(), first) << size;
    EXPECT_EQ(bytes(size).data_ptr(), first) << size;
  }
}

TEST_F(TensorMemory, EmptyTensorsTakeNone) {
  EXPECT_EQ(bytes(0).data_ptr(), nullptr);
}

// Bytes of address space.
std::int64_t mapped() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

// Each size has a class of its own: 2 GB if all waited.
TEST_F(TensorMemory, WhatWaitsIsBounded) {
  const std::int64_t before = mapped();
  for (std::int64_t size = 20'000'000; size < 250'000'000; size = size * 9 / 8) {
    bytes(size);
  }
  EXPECT_LT(mapped() - before, 700'000'000);
}

TEST_F(TensorMemory, ServesThreads) {
  std::vector<std::thread> threads;
  std::vector<std::vector<at::Tensor>> made(4);
  for (std::size_t t = 0; t < made.size(); ++t) {
    threads.emplace_back([&made, t] {
      for (int i = 0; i < 2000; ++i) {
        const at::Tensor x = at::full({1 + i % 300 * 17}, static_cast<double>(t), at::kFloat);
        ASSERT_EQ(x.sum().item<double>(), static_cast<double>(t) * static_cast<double>(x.numel()));
        if (i % 50 == 0) {
          made[t].push_back(x);  // freed by the main thread
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t t = 0; t < made.size(); ++t) {
    for (const at::Tensor& x : made[t]) {
      EXPECT_TRUE(x.eq(static_cast<double>(t)).all().item<bool>());
    }
  }
}

TEST_F(TensorMemory, TooMuchIsAnError) {
  EXPECT_THROW(bytes(std::int64_t{1} << 60), c10::Error);
}

#endif

}  // namespace
}  // namespace abtrain::device
