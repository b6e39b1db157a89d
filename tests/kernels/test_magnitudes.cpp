#include "ops/magnitudes.h"

#include "code_buffers.h"

namespace abtrain::ops {
namespace {

struct MagnitudeRule {
  Statistic statistic;
  float cut = -1;  // none
};
constexpr MagnitudeRule kMagnitudeRules[] = {{Statistic::Above},      {Statistic::Largest},
                                             {Statistic::Moments},    {Statistic::Above, 0.6f},
                                             {Statistic::Above, 0},   {Statistic::Above, 1e9f},
                                             {Statistic::Above, NAN}, {Statistic::Above, INFINITY}};

// Of a tensor's magnitudes in float64, as kernels/blocks/magnitudes.h defines them.
at::Tensor statistic_of(const at::Tensor& all, Statistic statistic, double cut) {
  if (statistic == Statistic::Largest) {
    const double largest = number(all.max());
    return at::full({1}, std::isfinite(largest) ? largest : kInfinity, at::kDouble);
  }
  if (statistic == Statistic::Moments) {
    return at::tensor({number(all.square().sum()), number(all.sum())}, at::kDouble);
  }
  const at::Tensor above = all.masked_select(all.le(cut).logical_not());
  const auto count = static_cast<double>(above.numel());
  return at::tensor({count > 0 ? number(above.sum()) : cut * 0, count}, at::kDouble);
}

void check_magnitudes(const Forms& forms, CodeBlocks& blocks, const at::Tensor& u) {
  for (const auto& [rule] : cases(kMagnitudeRules)) {
    const auto& [statistic, cut] = rule;
    const at::Tensor cuts = at::full({blocks.tensors()}, cut);
    cuts.slice(0, 1, blocks.tensors(), 2).mul_(200);
    const at::Tensor results = forms.same([&](const Form& form) {
      const at::Tensor out = form.blank({values_of(statistic) * blocks.tensors()});
      magnitudes(form.of(u), blocks, statistic, out, cut == -1 ? at::Tensor() : form.of(cuts));
      return out;
    });
    for (std::int64_t t = 0; t < blocks.tensors(); ++t) {
      const kernels::CodeBlock& first = blocks.host()[blocks.firsts()[t]];
      const kernels::CodeBlock& last = blocks.host()[blocks.firsts()[t + 1] - 1];
      const at::Tensor part = u.slice(0, first.begin, last.begin + last.count);
      const at::Tensor wanted =
          statistic_of(part.abs().to(at::kDouble), statistic, number(cuts[t]));
      const double tolerance = statistic == Statistic::Largest ? 0 : 1e-6;
      EXPECT_TRUE(results.view({blocks.tensors(), -1})[t]
                      .to(at::kDouble)
                      .allclose(wanted, tolerance, 0, /*equal_nan=*/true))
          << "tensor " << t;
    }
  }
}

ABT_OP_TEST(Magnitudes, AreThoseOfFloat64) {
  auto sets = block_sets(forms);
  sets.push_back(CodeBlocks({{0, 4096}, {4096, 4096 + 5}}));
  sets.push_back(
      CodeBlocks({{0, 1}, {1, 5001}, {6000, 4096}, {10096, 1}, {10097, forms.large(90001, 9001)}}));
  for (CodeBlocks& blocks : sets) {
    check_magnitudes(forms, blocks, randn(blocks.end(), 4));
    check_magnitudes(forms, blocks, odd_numbers(blocks.end(), 4));
  }
  CodeBlocks blocks({{0, 5}, {5, 7}});
  check_magnitudes(forms, blocks, at::zeros({12}));
  for (const float bad : kNotFinite) {
    const at::Tensor u = randn(12, 3);
    u[6].fill_(bad);
    check_magnitudes(forms, blocks, u);
  }
}

ABT_OP_TEST(Magnitudes, OfMoreBlocksThanLanesAreThoseOfFloat64) {
  const std::int64_t few = 3 * kernels::kBlock;
  CodeBlocks blocks({{0, few}, {few, forms.large(697, 258) * kernels::kBlock}});
  check_magnitudes(forms, blocks, randn(blocks.end(), 6));
}

TEST(Magnitudes, RefuseWhatDoesNotFit) {
  CodeBlocks blocks({{0, 5}, {5, 7}});
  EXPECT_REFUSED(magnitudes(at::zeros({11}), blocks, Statistic::Largest, at::empty({2})));
  EXPECT_REFUSED(magnitudes(at::zeros({12}), blocks, Statistic::Moments, at::empty({2})));
}

}  // namespace
}  // namespace abtrain::ops
