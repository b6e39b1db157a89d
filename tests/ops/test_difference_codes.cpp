#include "ops/difference_codes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tensors.h"

namespace abtrain::ops {
namespace {

at::Tensor coded(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor records =
      at::empty({records_of(first.numel()) * kRecordBytes}, first.options().dtype(at::kByte));
  encode_difference(first, second, records);
  return records;
}

at::Tensor decoded(const at::Tensor& records) {
  const at::Tensor out = at::empty(
      {records.numel() / kRecordBytes * kRecordNumbers}, records.options().dtype(at::kFloat));
  decode_differences(records, out);
  return out;
}

// The nearest of 255 codes of a record, in float64.
TEST(DifferenceCodes, RoundToTheNearestCode) {
  for (const std::int64_t numel : {1, 255, 256, 257, 10000}) {
    const at::Tensor first = randn(numel, 1) * 1e-3;
    const at::Tensor second = randn(numel, 2) * 1e-3;
    const at::Tensor out = decoded(coded(first, second));
    for (std::int64_t begin = 0; begin < out.numel(); begin += kRecordNumbers) {
      const std::int64_t count = std::min<std::int64_t>(kRecordNumbers, numel - begin);
      const at::Tensor exact = first.narrow(0, begin, count).to(at::kDouble) -
                               second.narrow(0, begin, count).to(at::kDouble);
      const double scale = exact.abs().max().item<double>() / 127;
      const at::Tensor nearest = (exact / scale).round() * scale;
      const at::Tensor got = out.narrow(0, begin, count).to(at::kDouble);
      // A number half-way may go to the other side in fp32.
      EXPECT_LT((got - exact).abs().max().item<double>(), 0.5001 * scale);
      EXPECT_GT(
          (got - nearest).abs().lt(1e-4 * scale).sum().item<double>(),
          0.99 * static_cast<double>(count));
    }
    EXPECT_EQ(out.narrow(0, numel, out.numel() - numel).abs().sum().item<double>(), 0);
  }
}

TEST(DifferenceCodes, OfWhatIsKeptAsRecordsAreOfItsNumbers) {
  for (const std::int64_t numel : {5, 256, 700}) {
    const at::Tensor kept = coded(randn(numel, 4), {});
    const at::Tensor second = randn(numel, 5);
    const at::Tensor records = at::empty_like(kept);
    encode_difference_of_kept(kept, second, records);
    EXPECT_TRUE(records.equal(coded(decoded(kept).narrow(0, 0, numel).contiguous(), second)));
  }
}

TEST(DifferenceCodes, WithoutASecondOneAreOfTheFirst) {
  const at::Tensor x = randn(700, 3);
  EXPECT_TRUE(coded(x, {}).equal(coded(x, at::zeros({700}))));
}

TEST(DifferenceCodes, ZerosAreZerosAndInfinitiesAreSeen) {
  EXPECT_EQ(decoded(coded(at::zeros({5}), {})).abs().sum().item<double>(), 0);
  const at::Tensor tiny = at::zeros({5}).add_(1e-44);
  EXPECT_EQ(decoded(coded(tiny, {})).abs().sum().item<double>(), 0);
  const at::Tensor infinite = at::zeros({5}).add_(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(decoded(coded(infinite, {})).sum().item<double>()));
}

TEST(DifferenceCodesErrors, RefuseWhatDoesNotFit) {
  const at::Tensor records = at::empty({kRecordBytes}, at::kByte);
  EXPECT_THROW(encode_difference(at::zeros({257}), {}, records), std::logic_error);
  EXPECT_THROW(encode_difference(at::zeros({5}), at::zeros({4}), records), std::logic_error);
  EXPECT_THROW(decode_differences(records, at::zeros({255})), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
