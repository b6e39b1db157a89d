#include "kernels/codes/wire_codes.h"

#include <gtest/gtest.h>

#include "code_buffers.h"

namespace abtrain::kernels {
namespace {

// Zeros, equal magnitudes, and perhaps what is not finite.
at::Tensor some_change(std::int64_t numel, bool finite) {
  const at::Tensor x = random_floats(numel, 3);
  for (std::int64_t i = 0; i < numel; i += 5) {
    x[i].fill_(i % 2 == 0 ? 0.0 : -0.0);
  }
  for (std::int64_t i = 3; i < numel; i += 7) {
    x[i].fill_(i % 2 == 0 ? 2.5 : -2.5);
  }
  if (!finite) {
    x[numel - 1].fill_(std::numeric_limits<float>::quiet_NaN());
    x[numel / 2].fill_(-std::numeric_limits<float>::infinity());
  }
  return x;
}

// Encodes what begins at element `begin`, decodes it in both ways, and compares
// all bytes, among them some behind the ends.
void compare(const WireLayout& layout, std::int64_t begin, bool finite) {
  const std::int64_t numel = begin + layout.numel + 3;
  at::Tensor u[2];
  at::Tensor out[2];
  at::Tensor record[2];
  for (int i = 0; i < 2; ++i) {
    u[i] = some_change(numel, true);
    u[i].narrow(0, begin, layout.numel).copy_(some_change(layout.numel, finite));
    out[i] = at::full({numel}, 0.7f);
    record[i] = at::full({wire_bytes(layout) + 4}, 77, at::kByte);
    record[i].narrow(0, 0, wire_bytes(layout)).fill_(i);
    const EncodeWire encode{
        layout, u[i].mutable_data_ptr<float>() + begin, record[i].mutable_data_ptr<std::uint8_t>()};
    if (i == 0) {
      work_on_host(encode);
    } else {
      ASSERT_EQ(encode_wire(encode, nullptr), 0);
    }
  }
  EXPECT_TRUE(same_bits(u[0], u[1]));
  EXPECT_TRUE(same_bits(record[0], record[1]));
  EXPECT_EQ(record[1][wire_bytes(layout)].item<int>(), 77);
  for (const bool add : {true, false}) {
    for (int i = 0; i < 2; ++i) {
      const DecodeWire decode{
          layout, record[0].const_data_ptr<std::uint8_t>(), 0.3f, add,
          out[i].mutable_data_ptr<float>() + begin};
      if (i == 0) {
        work_on_host(decode);
      } else {
        ASSERT_EQ(decode_wire(decode, nullptr), 0);
      }
    }
    EXPECT_TRUE(same_bits(out[0], out[1]));
    EXPECT_EQ(out[1][begin + layout.numel].item<float>(), 0.7f);
  }
}

class WireKernel : public testing::TestWithParam<WireCode> {};

// An odd begin: nothing is aligned.
TEST_P(WireKernel, CodesAsTheCpuToTheBit) {
  for (const std::int64_t numel : {1, 3, 31, 127, 128, 129, 388, 4095, 4225}) {
    SCOPED_TRACE(numel);
    compare({GetParam(), numel, 0, 0}, 0, /*finite=*/true);
    compare({GetParam(), numel, 0, 0}, 1, /*finite=*/false);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, WireKernel, testing::Values(WireCode::Int8, WireCode::Int4, WireCode::Int2));

TEST(WireKernels, SendTheLargestAsTheCpuToTheBit) {
  for (const WireLayout& layout :
       {WireLayout{WireCode::Sparse, 1, 4, 1}, WireLayout{WireCode::Sparse, 3, 64, 3},
        WireLayout{WireCode::Sparse, 4095, 64, 64}, WireLayout{WireCode::Sparse, 4096, 64, 64},
        WireLayout{WireCode::Sparse, 4096, 4096, 4096}, WireLayout{WireCode::Sparse, 4097, 4, 1},
        WireLayout{WireCode::Sparse, 9000, 1232, 244},
        WireLayout{WireCode::Sparse, 4207, 4096, 111}}) {
    SCOPED_TRACE(layout.numel);
    compare(layout, 0, /*finite=*/true);
    compare(layout, 1, /*finite=*/false);
  }
}

}  // namespace
}  // namespace abtrain::kernels
