#include "ops/gram_schmidt.h"

#include <ATen/ops/eye.h>

#include "op_test.h"

namespace abtrain::ops {
namespace {

at::Tensor orthonormalized(
    const Forms& forms, const at::Tensor& flat, const std::vector<RowSet>& sets) {
  return forms.same([&](const Form& form) {
    const at::Tensor rows = form.of(flat);
    gram_schmidt(rows, sets);
    return rows;
  });
}

void expect_orthonormal(const at::Tensor& rows) {
  const at::Tensor wide = rows.to(at::kDouble);
  EXPECT_LT(distance(at::matmul(wide, wide.t()), at::eye(rows.size(0))), 1e-6) << rows.sizes();
}

// More rows than a panel has are handled in panels, as on a GPU.
at::Tensor orthonormal(const Forms& forms, const at::Tensor& rows) {
  at::Tensor flat = rows.reshape({-1}).clone();
  const std::vector<RowSet> sets = {{0, rows.size(0), rows.size(1)}};
  if (rows.size(0) > kGramPanel) {
    gram_schmidt_in_panels(flat, sets);
  } else {
    flat = orthonormalized(forms, flat, sets);
  }
  expect_orthonormal(flat.view(rows.sizes()));
  return flat.view(rows.sizes());
}

ABT_OP_TEST(GramSchmidt, SpansWhatTheRowsDid) {
  for (const auto& [rows, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1},
           {1, 300},
           {4, 4},
           {3, 127},
           {4, 128},
           {7, 1001},
           {9, 500},
           {20, 20},
           {40, 1001}}) {
    const at::Tensor in = randn(rows, length, 1);
    const at::Tensor out = orthonormal(forms, in).to(at::kDouble);
    // Row k lies in the span of the first k + 1, on the side of row k.
    for (std::int64_t k = 0; k < rows; ++k) {
      const at::Tensor span = out.narrow(0, 0, k + 1);
      const at::Tensor row = in[k].to(at::kDouble);
      const at::Tensor inside = at::matmul(span.t(), at::matmul(span, row));
      EXPECT_LT(number(row.sub(inside).norm()), 1e-5 * number(row.norm()));
      EXPECT_GT(number(at::matmul(span[k], row)), 0);
    }
  }
}

ABT_OP_TEST(GramSchmidt, HoldsWhereRowsDepend) {
  for (const auto& [rows, apart] : {std::pair{4, 1e-3}, {4, 1e-5}, {30, 1e-5}}) {
    orthonormal(forms, randn(1, 500, 1).add(randn(rows, 500, 2), apart));
  }
  const at::Tensor narrow = at::zeros({16, 1000});  // few columns hold anything
  narrow.narrow(1, 0, 4).copy_(randn(16, 4, 3));
  const at::Tensor row = randn(1, 40, 3);
  for (const at::Tensor& rows :
       {narrow, at::matmul(randn(30, 3, 1), randn(3, 50, 2)),  // of rank 3, in several panels
        at::matmul(randn(30, 3, 1), randn(3, 30, 2)), at::full({8, 8}, 1.0f),
        at::cat({row, row, row.mul(-2)}), at::cat({at::zeros({1, 40}), row})}) {
    orthonormal(forms, rows);
  }
  // Zeros, and odd rows among others, in one panel and in several.
  for (const std::int64_t count : {3, 20}) {
    orthonormal(forms, at::zeros({count, 40}));
    orthonormal(forms, at::zeros({count, 300}));  // more than a row has lanes
    EXPECT_TRUE(orthonormal(forms, at::zeros({count, count})).equal(at::eye(count)));
    const at::Tensor odd = randn(count, 40, 4);
    odd[count - 2][7] = NAN;
    odd[count - 1][0] = INFINITY;
    orthonormal(forms, odd);
  }
}

ABT_OP_TEST(GramSchmidt, DoesNotDependOnTheSizeOfTheNumbers) {
  const at::Tensor in = randn(4, 200, 5);
  for (const float power : {0x1p-60f, 0x1p60f}) {  // of two: the very bits
    EXPECT_TRUE(orthonormal(forms, in.mul(power)).equal(orthonormal(forms, in)));
  }
}

// As each alone; what lies around them stays.
void check_matrices(const Forms& forms, const at::Tensor& flat, const std::vector<RowSet>& sets) {
  const at::Tensor out = orthonormalized(forms, flat, sets);
  const at::Tensor wanted = flat.clone();
  for (const RowSet& set : sets) {
    const auto matrix_in = [&](const at::Tensor& all) {
      return all.narrow(0, set.offset, set.rows * set.length).view({set.rows, set.length});
    };
    if (set.done > 0) {
      expect_orthonormal(matrix_in(out));
      matrix_in(wanted).copy_(matrix_in(out));
    } else if (set.rows > 0) {
      matrix_in(wanted).copy_(orthonormal(Forms({}), matrix_in(flat)));
    }
  }
  EXPECT_TRUE(out.equal(wanted));
}

ABT_OP_TEST(GramSchmidt, OfManyMatricesTouchesOnlyThem) {
  at::Tensor flat = randn(2500, 3);
  flat.narrow(0, 1300, 60).zero_();  // rows that depend: zeros, and equal ones
  flat.narrow(0, 1460, 100).copy_(flat.narrow(0, 1360, 100));
  // Three orthonormal rows, two orthogonal to them, and one that depends.
  gram_schmidt(flat, {{1800, 5, 100}});
  flat.narrow(0, 2100, 200).mul_(3);
  flat.narrow(0, 2300, 100).zero_();
  check_matrices(
      forms, flat,
      {{1, 3, 300},
       {901, 2, 128},
       {1300, 2, 30},
       {1360, 3, 100},
       {1700, 1, 1},
       {1750, 0, 50},
       {1800, 6, 100, 3}});
  // More than a launch takes.
  flat = randn(200'000, 7);
  flat.narrow(0, 8000, 2000).zero_();
  std::vector<RowSet> sets;
  for (std::int64_t i = 0; i < forms.large(200, 130); ++i) {
    sets.push_back({i * 1000, 1 + i % 4, 4 + i});
  }
  check_matrices(forms, flat, sets);
}

// Not to the bit.
ABT_OP_TEST(GramSchmidt, OfSeveralPanelsIsCloseToTheCpu) {
  const auto work = [](const Form& form) {
    const at::Tensor rows = form.of(randn(30 * 500, 8));
    gram_schmidt(rows, {{0, 30, 500}});
    return rows;
  };
  if (forms.has_kernels()) {
    EXPECT_TRUE(forms.by_kernels(work).cpu().allclose(forms.by_cpu(work), 0, 1e-5));
  }
}

TEST(GramSchmidt, RefusesMoreRowsThanFit) {
  const at::Tensor flat = at::zeros({100});
  EXPECT_REFUSED(gram_schmidt(flat, {{0, 6, 5}}));
  EXPECT_REFUSED(gram_schmidt(flat, {{60, 2, 25}}));
}

}  // namespace
}  // namespace abtrain::ops
