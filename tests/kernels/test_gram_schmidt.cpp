#include "kernels/blocks/gram_schmidt.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <vector>

#include "ops/gram_schmidt.h"

namespace abtrain::kernels {
namespace {

TEST(GramSchmidtKernel, EqualsTheCpuFormToTheBit) {
  const at::Tensor wanted = at::randn({2500}, at::detail::createCPUGenerator(3), at::kFloat);
  wanted.narrow(0, 1300, 60).zero_();  // rows that depend: zeros, and equal ones
  wanted.narrow(0, 1460, 100).copy_(wanted.narrow(0, 1360, 100));
  // Three orthonormal rows, two orthogonal to them, and one that depends.
  ops::gram_schmidt(wanted, {{1800, 5, 100}});
  wanted.narrow(0, 2100, 200).mul_(3);
  wanted.narrow(0, 2300, 100).zero_();
  const at::Tensor got = wanted.clone();
  const std::vector<ops::RowSet> sets = {{1, 3, 300},    {901, 2, 128}, {1300, 2, 30},
                                         {1360, 3, 100}, {1700, 1, 1},  {1800, 6, 100, 3}};
  RowSetList list;
  for (const ops::RowSet& set : sets) {
    list.sets[list.count++] = set;
  }
  ops::gram_schmidt(wanted, sets);
  ASSERT_EQ(gram_schmidt(got.mutable_data_ptr<float>(), list, nullptr), 0);
  EXPECT_TRUE(got.equal(wanted));
}

}  // namespace
}  // namespace abtrain::kernels
