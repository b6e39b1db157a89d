#include "ops/rows.h"

#include "op_test.h"

namespace abtrain::ops {
namespace {

using RowTensors = std::vector<RowTable::Tensor>;

// Short, odd and long rows; all of them chosen and few; an odd begin.
std::vector<RowTensors> row_tables(const Forms& forms) {
  const std::int64_t many = forms.large(512, 40);
  return {
      {{0, 1, 1, 1}},
      {{0, 5, 7, 2}, {35, 3, 300, 3}, {935, 40, 9, 1}},
      {{0, 8, 256, 4}, {2048, 3, 1024, 1}},
      {{1, 6, 520, 5}, {4000, 2, 33, 1}},
      {{0, 5, 300, 2}, {1600, 6, 7, 3}},
      {{1, 9, 33, 2}},
      {{0, many, 4608, 26}, {many * 4608 + 3, 64, 64, 64}}};
}

// The rows of a tensor in a buffer.
at::Tensor rows_of(const at::Tensor& u, const RowTable::Tensor& tensor) {
  return u.narrow(0, tensor.begin, tensor.rows * tensor.length).view({-1, tensor.length});
}

ABT_OP_TEST(Rows, HaveTheNormsOfFloat64) {
  for (const RowTensors& tensors : row_tables(forms)) {
    RowTable table(tensors);
    const at::Tensor u = randn(table.end(), 1);
    const at::Tensor norms = forms.same([&](const Form& form) {
      const at::Tensor out = form.blank({table.rows()});
      row_norms(form.of(u), table, out);
      return out;
    });
    std::vector<at::Tensor> wanted;
    for (const RowTable::Tensor& tensor : tensors) {
      wanted.push_back(rows_of(u, tensor).to(at::kDouble).square().sum(1));
    }
    EXPECT_TRUE(norms.to(at::kDouble).allclose(at::cat(wanted), 1e-6, 0));
  }
}

at::Tensor chosen_rows(const Forms& forms, const at::Tensor& norms, RowTable& table) {
  return forms.same([&](const Form& form) {
    const at::Tensor chosen = form.blank({table.chosen()}, at::kInt);
    choose_rows(form.of(norms), table, chosen);
    return chosen;
  });
}

// The lower one of two equal ones; what is not finite is never left out.
ABT_OP_TEST(Rows, AreChosenByTheirNorms) {
  RowTable two({{0, 5, 300, 2}, {1600, 6, 7, 3}});
  const auto chosen_of = [&](const std::vector<double>& norms) {
    return chosen_rows(forms, at::tensor(norms, at::kFloat), two);
  };
  EXPECT_TRUE(
      chosen_of({1, 7, 3, 7, 7, 0, 0, 2, 0, 0, 0}).equal(at::tensor({1, 3, 2, 0, 1}, at::kInt)));
  EXPECT_TRUE(chosen_of({1, 7, INFINITY, 7, NAN, 0, 0, 2, 0, 1, NAN})
                  .equal(at::tensor({4, 2, 5, 2, 4}, at::kInt)));
  for (const RowTensors& tensors : row_tables(forms)) {
    RowTable table(tensors);
    for (const int values : {2, 1000}) {  // of few values: ties
      const at::Tensor norms = randint(0, values, {table.rows()}, 3, at::kFloat);
      norms[table.rows() / 2].fill_(NAN);
      norms[table.rows() / 3].fill_(INFINITY);
      chosen_rows(forms, norms, table);
    }
  }
}

ABT_OP_TEST(Rows, AreSentTakenAwayAndAdded) {
  for (const RowTensors& tensors : row_tables(forms)) {
    RowTable table(tensors);
    const at::Tensor chosen =
        chosen_rows(forms, randint(0, 1000, {table.rows()}, 3, at::kFloat), table);
    const at::Tensor x = randn(table.end(), 1), base = randn(table.end(), 4);
    for (const auto& [members] : cases({1, 3, 4})) {
      const auto [u, wire, sum] = forms.same([&](const Form& form) {
        const std::array out{form.of(x), form.blank({table.values()}, at::kHalf), form.of(base)};
        const at::Tensor rows = form.of(chosen);
        send_rows(out[0], table, rows, members, out[1]);
        add_rows(out[1], table, rows, out[2]);
        return out;
      });
      const at::Tensor left = x.clone(), added = base.clone();
      std::int64_t row = 0, value = 0;
      for (const RowTable::Tensor& tensor : tensors) {
        const at::Tensor indices = chosen.narrow(0, row, tensor.chosen).to(at::kLong);
        const at::Tensor sent = wire.narrow(0, value, tensor.chosen * tensor.length)
                                    .view({tensor.chosen, tensor.length});
        const at::Tensor from = rows_of(x, tensor).index_select(0, indices);
        EXPECT_TRUE(sent.equal(from.mul(1.0f / static_cast<float>(members)).to(at::kHalf)));
        // In fp64, rounded once: what a fused multiply-add gives.
        const at::Tensor rest = from.to(at::kDouble).sub(sent.to(at::kDouble), members);
        rows_of(left, tensor).index_copy_(0, indices, rest.to(at::kFloat));
        rows_of(added, tensor).index_add_(0, indices, sent.to(at::kFloat));
        row += tensor.chosen;
        value += sent.numel();
      }
      EXPECT_EQ(wire.numel(), value);
      EXPECT_TRUE(u.equal(left));
      EXPECT_TRUE(sum.equal(added));
    }
  }
}

TEST(Rows, RefuseWhatDoesNotFit) {
  EXPECT_REFUSED(RowTable({{0, 5, 3, 6}}));
  EXPECT_REFUSED(RowTable({{0, 5, 3, 0}}));
  EXPECT_REFUSED(RowTable({{0, 5, 3, 1}, {14, 1, 1, 1}}));
  RowTable table({{0, 5, 300, 2}, {1600, 6, 7, 3}});
  EXPECT_REFUSED(row_norms(at::zeros({1641}), table, at::zeros({11})));
  EXPECT_REFUSED(choose_rows(at::zeros({11}), table, at::zeros({5})));
}

}  // namespace
}  // namespace abtrain::ops
