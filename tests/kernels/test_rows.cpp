#include "kernels/blocks/rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "code_buffers.h"
#include "ops/rows.h"

namespace abtrain::kernels {
namespace {

// Short, odd and long rows; all of them chosen and few; an odd begin.
std::vector<std::vector<ops::RowTable::Tensor>> row_sets() {
  return {
      {{0, 1, 1, 1}},
      {{0, 5, 7, 2}, {35, 3, 300, 3}, {935, 40, 9, 1}},
      {{0, 8, 256, 4}, {2048, 3, 1024, 1}},
      {{1, 6, 520, 5}, {4000, 2, 33, 1}}};
}

TEST(RowKernel, TakesNormsAsTheCpuToTheBit) {
  for (const auto& tensors : row_sets()) {
    ops::RowTable table(tensors);
    const at::Tensor u = random_floats(table.end(), 1);
    const at::Tensor wanted = at::empty({table.rows()});
    const at::Tensor got = at::full({table.rows()}, -1.0f);
    ops::row_norms(u, table, wanted);
    const RowNorms job{
        table.on(at::kCPU), table.size(), table.rows(), u.const_data_ptr<float>(),
        got.mutable_data_ptr<float>()};
    ASSERT_EQ(row_norms(job, nullptr), 0);
    EXPECT_TRUE(same_bits(got, wanted));
  }
}

TEST(RowKernel, ChoosesAsTheCpu) {
  for (const auto& tensors : row_sets()) {
    ops::RowTable table(tensors);
    for (const int values : {2, 1000}) {
      // Of few values: ties.
      const at::Tensor norms =
          at::randint(values, {table.rows()}, at::detail::createCPUGenerator(3), at::kFloat);
      norms[table.rows() / 2].fill_(NAN);
      norms[table.rows() / 3].fill_(INFINITY);
      const at::Tensor wanted = at::full({table.chosen()}, -1, at::kInt);
      const at::Tensor got = at::full({table.chosen()}, -2, at::kInt);
      ops::choose_rows(norms, table, wanted);
      const ChooseRows job{
          table.on(at::kCPU), table.size(), table.rows(), norms.const_data_ptr<float>(),
          got.mutable_data_ptr<std::int32_t>()};
      ASSERT_EQ(choose_rows(job, nullptr), 0);
      EXPECT_TRUE(same_bits(got, wanted));
    }
  }
}

TEST(RowKernel, SendsAndAddsAsTheCpuToTheBit) {
  for (const auto& tensors : row_sets()) {
    ops::RowTable table(tensors);
    const at::Tensor norms = random_floats(table.rows(), 2).abs_();
    const at::Tensor chosen = at::empty({table.chosen()}, at::kInt);
    ops::choose_rows(norms, table, chosen);
    for (const int members : {1, 3}) {
      const at::Tensor u = random_floats(table.end(), 1);
      const at::Tensor u_kernel = u.clone();
      const at::Tensor wire = at::empty({table.values()}, at::kHalf);
      const at::Tensor got = at::full({table.values()}, 7, at::kHalf);
      ops::send_rows(u, table, chosen, members, wire);
      const SendRows job{
          table.on(at::kCPU),
          table.size(),
          table.chosen(),
          chosen.const_data_ptr<std::int32_t>(),
          u_kernel.mutable_data_ptr<float>(),
          got.mutable_data_ptr(),
          members};
      ASSERT_EQ(send_rows(job, nullptr), 0);
      EXPECT_TRUE(same_bits(got, wire));
      EXPECT_TRUE(same_bits(u_kernel, u));

      const at::Tensor wanted = random_floats(table.end(), 4);
      const at::Tensor sum = wanted.clone();
      ops::add_rows(wire, table, chosen, wanted);
      const AddRows add{table.on(at::kCPU),    table.size(),
                        table.chosen(),        chosen.const_data_ptr<std::int32_t>(),
                        wire.const_data_ptr(), sum.mutable_data_ptr<float>()};
      ASSERT_EQ(add_rows(add, nullptr), 0);
      EXPECT_TRUE(same_bits(sum, wanted));
    }
  }
}

}  // namespace
}  // namespace abtrain::kernels
