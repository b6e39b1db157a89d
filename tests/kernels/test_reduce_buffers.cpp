#include "kernels/blocks/reduce_buffers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "code_buffers.h"
#include "ops/reduce_buffers.h"

namespace abtrain::kernels {
namespace {

class ReduceKernel : public testing::TestWithParam<at::ScalarType> {
 protected:
  std::vector<at::Tensor> random_buffers(int n, std::int64_t numel) const {
    at::Generator generator = at::detail::createCPUGenerator(7);
    std::vector<at::Tensor> all;
    for (int b = 0; b < n; ++b) {
      // Integers over their whole range: sums that wrap around are among them.
      all.push_back(
          is_integer() ? at::randint(
                             std::numeric_limits<int>::min(), std::numeric_limits<int>::max(),
                             {numel}, generator, at::kLong)
                             .to(GetParam())
                       : at::randn({numel}, generator).to(GetParam()));
    }
    return all;
  }
  BufferList list_of(const std::vector<at::Tensor>& buffers, std::int64_t begin) const {
    BufferList list;
    for (const at::Tensor& buffer : buffers) {
      list.data[list.count++] =
          static_cast<char*>(buffer.mutable_data_ptr()) + begin * buffer.element_size();
    }
    return list;
  }
  bool is_integer() const {
    return at::isIntegralType(GetParam(), false);
  }
  Element element() const {
    return GetParam() == at::kByte    ? Element::U8
           : GetParam() == at::kInt   ? Element::I32
           : GetParam() == at::kFloat ? Element::F32
           : GetParam() == at::kHalf  ? Element::F16
                                      : Element::BF16;
  }
};

TEST_P(ReduceKernel, EqualsTheCpuFormToTheBit) {
  for (const std::int64_t numel : {1, 7, 8, 4099, 30011}) {
    for (const int n : {1, 2, 3, 8, 64}) {
      for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max}) {
        if (op == ReduceOp::Mean && is_integer()) {
          continue;
        }
        // Odd begins take the path without packets.
        for (const std::int64_t begin : {0, 1, 4}) {
          if (begin >= numel) {
            continue;
          }
          const auto wanted = random_buffers(n, numel);
          const auto got = random_buffers(n, numel);
          ops::reduce_buffers(wanted, begin, numel - begin, wanted, begin, op);
          ASSERT_EQ(
              reduce_buffers(
                  list_of(got, begin), list_of(got, begin), numel - begin, element(), op, nullptr),
              0);
          for (int b = 0; b < n; ++b) {
            ASSERT_TRUE(same_bits(got[b], wanted[b])) << numel << " x " << n << " from " << begin;
          }
        }
      }
    }
  }
}

TEST_P(ReduceKernel, RefusesAMeanOfIntegers) {
  const auto in = random_buffers(2, 5);
  EXPECT_EQ(
      reduce_buffers(list_of(in, 0), list_of(in, 0), 5, element(), ReduceOp::Mean, nullptr),
      is_integer() ? 1 : 0);
}

TEST_P(ReduceKernel, AMaximumShowsANan) {
  if (is_integer()) {
    GTEST_SKIP() << "integers have none";
  }
  for (const int place : {0, 1, 2}) {
    const auto in = random_buffers(3, 40);
    in[place][17].fill_(std::numeric_limits<float>::quiet_NaN());
    reduce_buffers(list_of(in, 0), list_of(in, 0), 40, element(), ReduceOp::Max, nullptr);
    for (const at::Tensor& buffer : in) {
      EXPECT_TRUE(buffer.isnan()[17].item<bool>()) << place;
      EXPECT_EQ(buffer.isnan().sum().item<int>(), 1) << place;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Dtypes, ReduceKernel,
    testing::Values(at::kFloat, at::kHalf, at::kBFloat16, at::kByte, at::kInt),
    [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace abtrain::kernels
