#include "ops/select_largest.h"

#include <bit>
#include <numeric>

#include "op_test.h"

namespace abtrain::ops {
namespace {

// A stable sort by |x|, then the first k in their order.
at::Tensor largest_of(const at::Tensor& values, std::int64_t k) {
  const at::Tensor wide = values.to(at::kFloat);
  const auto* x = wide.const_data_ptr<float>();
  std::vector<int> order(static_cast<std::size_t>(values.numel()));
  std::iota(order.begin(), order.end(), 0);
  const auto size_of = [&](int i) {
    return std::pair(std::isnan(x[i]), std::isnan(x[i]) ? 0 : std::fabs(x[i]));
  };
  std::ranges::stable_sort(order, [&](int a, int b) { return size_of(a) > size_of(b); });
  order.resize(static_cast<std::size_t>(k));
  std::ranges::sort(order);
  return at::tensor(order, at::kInt);
}

void check_largest(const Forms& forms, const at::Tensor& numbers, std::vector<std::int64_t> ks) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor values = numbers.to(type);
    for (const std::int64_t k : ks) {
      const auto [chosen, by_operators] = forms.same([&](const Form& form) {
        const at::Tensor in = form.of(values);
        return std::array{select_largest(in, k), select_largest_by_operators(in, k)};
      });
      const at::Tensor wanted = largest_of(values, k);
      EXPECT_TRUE(chosen.equal(wanted)) << k << " of " << values.numel() << ' ' << type;
      EXPECT_TRUE(by_operators.equal(wanted)) << k << " of " << values.numel() << ' ' << type;
    }
  }
}

ABT_OP_TEST(SelectLargest, IsAStableSort) {
  for (const std::int64_t numel : {1L, 2L, 77L, 4096L, forms.large(300001, 30001)}) {
    check_largest(forms, randn(numel, 4), {0, 1, numel / 3, numel - 1, numel});
  }
}

ABT_OP_TEST(SelectLargest, OfEqualOnesTakesTheFirst) {
  // Signs differ, magnitudes are few; zeros of both signs.
  check_largest(forms, randn(5000, 4).mul(2).round().div(2), {1, 100, 2500, 4900, 5000});
  check_largest(forms, at::tensor({0.f, -0.f, 0.f, -0.f}), {2});
}

ABT_OP_TEST(SelectLargest, CountsNanAsTheLargest) {
  const at::Tensor values = randn(1000, 4);
  values[10] = kInfinity;
  values[700] = NAN;
  values[20] = -kInfinity;
  check_largest(forms, values, {1, 2, 3, 4});
}

// Neighbors in the last bit, and numbers below the smallest normal one.
ABT_OP_TEST(SelectLargest, TellsNeighborsApart) {
  std::vector<float> numbers;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const std::uint32_t bits = (i * 7919) % 3000;
    numbers.push_back(std::bit_cast<float>(i % 3 == 0 ? bits : 0x3F800000 | bits));
  }
  check_largest(forms, at::tensor(numbers), {1, 10, 1500, 2000, 2500});
}

TEST(SelectLargest, RefusesMoreThanThereAre) {
  EXPECT_REFUSED(select_largest(at::empty({3}), 4));
  EXPECT_REFUSED(select_largest(at::empty({3}), -1));
  EXPECT_REFUSED(select_largest(at::empty({3}, at::kHalf), 1));
}

}  // namespace
}  // namespace abtrain::ops
