#include "ops/reduce_buffers.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernel_test.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(ReduceBuffers) : public KernelTest {
 protected:
  // The numbers of n buffers.
  static at::Tensor random(int n, std::int64_t numel, at::ScalarType type) {
    at::Generator generator = at::detail::createCPUGenerator(7);
    // Integers over their whole range: sums that wrap around are among them.
    return at::isFloatingType(type)
               ? at::randn({n, numel}, generator, at::kDouble).to(type)
               : at::randint(
                     std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), {n, numel},
                     generator, at::kLong)
                     .to(type);
  }
  // Buffers that each begin at an aligned address.
  static std::vector<at::Tensor> buffers_of(const Form& form, const at::Tensor& values) {
    std::vector<at::Tensor> all;
    for (const at::Tensor& each : values.unbind()) {
      all.push_back(form.of(each));
    }
    return all;
  }
};

TEST_F(ABT_KERNEL_SUITE(ReduceBuffers), EqualTheCpuToTheBit) {
  for (const auto type :
       {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble, at::kByte, at::kInt, at::kLong}) {
    for (const std::int64_t numel : {0L, 1L, 7L, 8L, 4096L, 4099L, 30011L, large(100003, 0)}) {
      for (const int n : {1, 2, 3, 8, 64}) {
        const at::Tensor values = random(n, numel, type);
        for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max}) {
          if (op == ReduceOp::Mean && !at::isFloatingType(type)) {
            continue;
          }
          // Odd begins take the path without packets.
          for (const std::int64_t begin : {0, 1, 3, 4}) {
            if (begin > numel) {
              continue;
            }
            SCOPED_TRACE(
                testing::Message() << type << ", " << n << " x " << numel << " from " << begin);
            expect_same([&](const Form& form) {
              const auto buffers = buffers_of(form, values);
              reduce_buffers(buffers, begin, numel - begin, buffers, begin, op);
              return buffers;
            });
          }
        }
      }
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(ReduceBuffers), ShowANanInAMaximum) {
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble}) {
    for (const int place : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << type << " " << place);
      const at::Tensor values = random(3, 40, type);
      values[place][17].fill_(NAN);
      expect_same([&](const Form& form) {
        auto buffers = buffers_of(form, values);
        reduce_buffers(buffers, 0, 40, buffers, 0, ReduceOp::Max);
        for (at::Tensor& buffer : buffers) {
          buffer = buffer.isnan();  // whose bits need not be the same
          EXPECT_TRUE(buffer[17].item<bool>());
          EXPECT_EQ(buffer.sum().item<int>(), 1);
        }
        return buffers;
      });
    }
  }
}

#ifdef ABTRAIN_EMULATED
TEST_F(ABT_KERNEL_SUITE(ReduceBuffers), RefuseAMeanOfIntegers) {
  using kernels::Element;
  std::int32_t data[5] = {};
  kernels::BufferList list;
  list.data[list.count++] = data;
  for (const auto element :
       {Element::U8, Element::I32, Element::F32, Element::F16, Element::BF16}) {
    const bool is_integer = element == Element::U8 || element == Element::I32;
    EXPECT_EQ(
        kernels::reduce_buffers(list, list, 5, element, ReduceOp::Mean, nullptr),
        is_integer ? 1 : 0);
  }
}
#endif

}  // namespace
}  // namespace abtrain::ops
