#include "ops/wire_codes.h"

#include <cmath>

#include "base/text.h"
#include "kernel_test.h"
#include "ops/wire_cases.h"

namespace abtrain::ops {
namespace {

// Zeros, equal magnitudes, and perhaps what is not finite.
at::Tensor some_change(std::int64_t numel, bool finite) {
  const at::Tensor x = randn(numel, 3);
  x.slice(0, 0, numel, 10).fill_(0.0);
  x.slice(0, 5, numel, 10).fill_(-0.0);
  x.slice(0, 3, numel, 14).fill_(-2.5);
  x.slice(0, 10, numel, 14).fill_(2.5);
  if (!finite) {
    x[numel - 1].fill_(NAN);
    x[numel / 2].fill_(-INFINITY);
  }
  return x;
}

class ABT_KERNEL_SUITE(WireCodes) : public KernelTest {
 protected:
  // Also what lies behind the ends.
  static void expect_same_codes(
      const WireFormat& format, std::int64_t numel, std::int64_t begin, bool finite) {
    SCOPED_TRACE(formatted("{}: {} from {}, finite: {}", name_of(format), numel, begin, finite));
    const at::Tensor values = some_change(begin + numel + 3, true);
    values.narrow(0, begin, numel).copy_(some_change(numel, finite));
    const std::int64_t bytes = wire_bytes(format, numel);
    expect_same([&](const Form& form) {
      const at::Tensor u = form.of(values);
      const at::Tensor record = form.of(at::full({bytes + 4}, 7, at::kByte));
      record.narrow(0, 0, bytes).copy_(form.blank({bytes}, at::kByte));
      encode_wire(u.narrow(0, begin, numel), format, record);
      const at::Tensor sum = form.of(at::full({values.numel()}, 0.7f));
      decode_wire(record, format, 0.3f, /*add=*/true, sum.narrow(0, begin, numel));
      const at::Tensor product = sum.clone();
      decode_wire(record, format, 0.3f, /*add=*/false, product.narrow(0, begin, numel));
      EXPECT_EQ(record[bytes].item<int>(), 7);
      EXPECT_EQ(product[begin + numel].item<float>(), 0.7f);
      return std::vector{u, record, sum, product};
    });
  }
};

TEST_F(ABT_KERNEL_SUITE(WireCodes), EncodeAndDecodeAsTheCpuToTheBit) {
  auto formats = kFormats;
  formats.push_back({WireCode::Sparse, 1.0 / 1024});
  for (const WireFormat& format : formats) {
    for (const std::int64_t numel :
         {1L, 3L, 31L, 127L, 128L, 129L, 388L, 4095L, 4096L, 4097L, 4207L, 4225L, 9000L,
          large(300'001, 20'001)}) {
      for (const bool finite : {true, false}) {
        // An odd begin: nothing is aligned.
        expect_same_codes(format, numel, 0, finite);
        expect_same_codes(format, numel, 1, finite);
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
