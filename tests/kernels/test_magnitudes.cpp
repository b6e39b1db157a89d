#include "kernels/blocks/magnitudes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "code_buffers.h"

namespace abtrain::kernels {
namespace {

constexpr Statistic kStatistics[] = {Statistic::Sum, Statistic::Largest, Statistic::Moments};

// Runs the CPU form and the kernel, and compares their results.
void expect_same_bits(Magnitudes job) {
  const std::int64_t values = values_of(job.statistic);
  const at::Tensor parts = at::empty({values * job.count});
  if (job.parts == nullptr) {
    job.parts = parts.mutable_data_ptr<float>();
  }
  at::Tensor results[2];
  for (int i = 0; i < 2; ++i) {
    results[i] = at::full({values * job.tensors}, static_cast<float>(-1 - i));
    job.results = results[i].mutable_data_ptr<float>();
    i == 0 ? work_on_host(job) : static_cast<void>(magnitudes(job, nullptr));
  }
  EXPECT_TRUE(same_bits(results[0], results[1])) << static_cast<int>(job.statistic);
}

TEST(MagnitudesKernel, GivesTheBitsOfTheCpu) {
  auto sets = tensor_sets();
  sets.push_back({{0, 4096}, {4096, 4096 + 5}});
  for (const auto& tensors : sets) {
    for (const bool in_windows : {false, true}) {
      const ops::CodeBlocks blocks(tensors, in_windows);
      for (const bool finite : {true, false}) {
        const at::Tensor u = random_floats(blocks.end(), 4);
        if (!finite) {
          u[blocks.end() / 2].fill_(-INFINITY);
          u[blocks.end() / 3].fill_(-0.0f);
          u[blocks.end() - 1].fill_(NAN);
        }
        for (const Statistic statistic : kStatistics) {
          expect_same_bits(
              {blocks.host(), blocks.size(), blocks.firsts().data(), blocks.tensors(),
               u.const_data_ptr<float>(), statistic, nullptr, nullptr});
        }
      }
    }
  }
}

// More blocks than lanes. Without blocks of its own the job combines the parts
// that are there.
TEST(MagnitudesKernel, CombinesManyBlocksAsTheCpu) {
  const std::vector<std::int64_t> firsts = {0, 3, 700};
  const at::Tensor parts = random_floats(1400, 6);
  for (const Statistic statistic : kStatistics) {
    expect_same_bits(
        {nullptr, 0, firsts.data(), 2, nullptr, statistic, parts.mutable_data_ptr<float>(),
         nullptr});
  }
}

}  // namespace
}  // namespace abtrain::kernels
