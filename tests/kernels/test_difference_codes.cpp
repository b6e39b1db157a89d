#include "ops/difference_codes.h"

#include "op_test.h"

namespace abtrain::ops {
namespace {

at::Tensor blank_records(const Form& form, std::int64_t numel) {
  return form.blank({records_of(numel) * kRecordBytes}, at::kByte);
}

// The nearest of 255 codes of a record, in float64.
ABT_OP_TEST(DifferenceCodes, RoundToTheNearestCode) {
  for (const auto& [numel] :
       cases({1L, 5L, 255L, 256L, 257L, 700L, forms.large(100'003, 10'000)})) {
    const at::Tensor x = randn(numel, 1) * 1e-3, y = randn(numel, 2) * 1e-3;
    const auto [alone, less_zero, records, decoded, of_kept, of_decoded] =
        forms.same([&](const Form& form) {
          const at::Tensor first = form.of(x), second = form.of(y);
          const std::array out{
              blank_records(form, numel), blank_records(form, numel),
              blank_records(form, numel), form.blank({records_of(numel) * kRecordNumbers}),
              blank_records(form, numel), blank_records(form, numel)};
          encode_difference(first, {}, out[0]);
          encode_difference(first, form.of(at::zeros({numel})), out[1]);
          encode_difference(first, second, out[2]);
          decode_differences(out[2], out[3]);
          encode_difference_of_kept(out[2], second, out[4]);
          encode_difference(out[3].narrow(0, 0, numel), second, out[5]);
          return out;
        });
    EXPECT_TRUE(alone.equal(less_zero));
    EXPECT_TRUE(of_kept.equal(of_decoded));
    const at::Tensor exact = in_rows(x.to(at::kDouble) - y.to(at::kDouble), kRecordNumbers);
    const at::Tensor scale = exact.abs().amax(1, /*keepdim=*/true) / 127;
    const at::Tensor got = decoded.view_as(exact).to(at::kDouble) / scale;
    // A number half-way may go to the other side in fp32.
    EXPECT_LT(distance(got, exact / scale), 0.5001);
    const at::Tensor other = (got - (exact / scale).round()).abs().gt(1e-4);
    EXPECT_LE(number(other.sum()), 0.01 * static_cast<double>(numel));
    EXPECT_FALSE(decoded.slice(0, numel).any().item<bool>());
  }
}

ABT_OP_TEST(DifferenceCodes, ZerosAreZerosAndInfinitiesAreSeen) {
  for (const double value : {0.0, 1e-44, double{kInfinity}}) {
    const at::Tensor decoded = forms.same([&](const Form& form) {
      const at::Tensor records = blank_records(form, 5), out = form.blank({kRecordNumbers});
      encode_difference(form.of(at::full({5}, value, at::kFloat)), {}, records);
      decode_differences(records, out);
      return out;
    });
    const double sum = number(decoded.abs().sum());
    EXPECT_TRUE(std::isinf(value) ? std::isnan(sum) : sum == 0) << value;
  }
}

TEST(DifferenceCodes, RefuseWhatDoesNotFit) {
  const at::Tensor records = at::empty({kRecordBytes}, at::kByte);
  EXPECT_REFUSED(encode_difference(at::zeros({257}), {}, records));
  EXPECT_REFUSED(encode_difference(at::zeros({5}), at::zeros({4}), records));
  EXPECT_REFUSED(decode_differences(records, at::zeros({255})));
}

}  // namespace
}  // namespace abtrain::ops
