#include "ops/scale_cast.h"

#include <bit>

#include "op_test.h"
#include "ops/cpu/convert.h"

namespace abtrain::ops {
namespace {

ABT_OP_TEST(ScaleCast, EqualsLibTorch) {
  constexpr at::ScalarType kTypes[] = {at::kFloat, at::kHalf, at::kBFloat16};
  for (const auto& [from, to, numel] : cases(kTypes, kTypes, {0, 1, 7, 2048, 5001})) {
    const at::Tensor in = randn(numel, 3).mul(100).to(from);
    const at::Tensor wanted = in.to(at::kFloat).mul(0.3f).to(to);
    for (const auto cast : {scale_cast, scale_cast_by_promotion}) {
      EXPECT_TRUE(forms
                      .same([&](const Form& form) {
                        const at::Tensor out = form.blank({numel}, to);
                        cast(form.of(in), 0.3f, out);
                        return out;
                      })
                      .equal(wanted));
    }
  }
}

// A product beyond the range of the input's 16 bits.
TEST(ScaleCast, ProductsInFp32AreNotBoundedByFp16) {
  const auto in = at::full({3}, 60000, at::kHalf);
  for (const auto cast : {scale_cast, scale_cast_by_promotion}) {
    const auto out = at::empty({3}, at::kFloat);
    cast(in, 4, out);
    EXPECT_TRUE(out.equal(in.to(at::kFloat).mul(4)));
  }
}

// Its bits, or -1 for any NaN.
template <class T>
int pattern_of(T number) {
  return std::isnan(static_cast<float>(number)) ? -1 : number.x;
}

// Every 16-bit pattern there and back, and numbers of the whole range; both forms against c10's
// own.
template <class T>
void check_conversions() {
  std::vector<T> in(65536);
  for (std::size_t bits = 0; bits < in.size(); ++bits) {
    in[bits].x = static_cast<std::uint16_t>(bits);
  }
  std::vector<float> wide(in.size());
  to_float(in.data(), wide.data(), 65536);
  for (std::size_t bits = 0; bits < in.size(); ++bits) {
    const float wanted = static_cast<float>(in[bits]);
    ASSERT_TRUE(std::isnan(wanted) ? std::isnan(wide[bits]) : wide[bits] == wanted) << bits;
  }
  for (std::uint32_t bits = 0; bits < 0xFFFF0000u; bits += 40961) {
    wide.push_back(std::bit_cast<float>(bits));
  }
  std::vector<T> back(wide.size());
  from_float(wide.data(), back.data(), std::ssize(wide));
  for (std::size_t i = 0; i < wide.size(); ++i) {
    ASSERT_EQ(pattern_of(back[i]), pattern_of(i < in.size() ? in[i] : T(wide[i]))) << wide[i];
  }
}

TEST(ConvertCpu, EqualsC10) {
  check_conversions<c10::Half>();
  check_conversions<c10::BFloat16>();
}

TEST(ScaleCast, RefusesOtherLengths) {
  EXPECT_REFUSED(scale_cast(randn(3, 3), 1, at::empty({4}, at::kHalf)));
  EXPECT_REFUSED(scale_cast(randn(3, 3), 1, at::empty({3}, at::kInt)));
}

}  // namespace
}  // namespace abtrain::ops
