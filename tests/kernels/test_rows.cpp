#include "ops/rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>

#include <cmath>

#include "base/text.h"
#include "kernel_test.h"

namespace abtrain::ops {
namespace {

// Short, odd and long rows; all of them chosen and few; an odd begin.
std::vector<RowTable> row_tables() {
  const std::int64_t many = large(512, 40);
  return {
      RowTable({{0, 1, 1, 1}}),
      RowTable({{0, 5, 7, 2}, {35, 3, 300, 3}, {935, 40, 9, 1}}),
      RowTable({{0, 8, 256, 4}, {2048, 3, 1024, 1}}),
      RowTable({{1, 6, 520, 5}, {4000, 2, 33, 1}}),
      RowTable({{0, 5, 300, 2}, {1600, 6, 7, 3}}),
      RowTable({{1, 9, 33, 2}}),
      RowTable({{0, many, 4608, 26}, {many * 4608 + 3, 64, 64, 64}})};
}

class ABT_KERNEL_SUITE(Rows) : public KernelTest {};

TEST_F(ABT_KERNEL_SUITE(Rows), TakeNormsAsTheCpuToTheBit) {
  for (RowTable& table : row_tables()) {
    SCOPED_TRACE(table.rows());
    expect_same([&](const Form& form) {
      const at::Tensor norms = form.blank({table.rows()});
      row_norms(form.of(randn(table.end(), 1)), table, norms);
      return std::vector{norms};
    });
  }
}

TEST_F(ABT_KERNEL_SUITE(Rows), AreChosenSentAndAddedAsByTheCpuToTheBit) {
  for (RowTable& table : row_tables()) {
    for (const int values : {2, 1000}) {
      // Of few values: ties.
      const at::Tensor norms =
          at::randint(values, {table.rows()}, at::detail::createCPUGenerator(3), at::kFloat);
      norms[table.rows() / 2].fill_(NAN);
      norms[table.rows() / 3].fill_(INFINITY);
      const at::Tensor chosen = at::empty({table.chosen()}, at::kInt);
      choose_rows(norms, table, chosen);
      for (const int members : {1, 3}) {
        SCOPED_TRACE(formatted("{} rows, {} values, {} members", table.rows(), values, members));
        expect_same([&](const Form& form) {
          const at::Tensor choice = form.blank({table.chosen()}, at::kInt);
          choose_rows(form.of(norms), table, choice);
          const at::Tensor rows = form.of(chosen);
          const at::Tensor u = form.of(randn(table.end(), 1));
          const at::Tensor wire = form.blank({table.values()}, at::kHalf);
          send_rows(u, table, rows, members, wire);
          const at::Tensor estimate = form.of(randn(table.end(), 4));
          add_rows(wire, table, rows, estimate);
          return std::vector{choice, u, wire, estimate};
        });
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
