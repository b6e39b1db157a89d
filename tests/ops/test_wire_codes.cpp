#include "ops/wire_codes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "wire_cases.h"

namespace abtrain::ops {
namespace {

const std::vector<std::int64_t> kNumels = {1, 3, 127, 128, 129, 4095, 4096, 4097, 300'001};

std::vector<int> bytes_of(const at::Tensor& record) {
  const auto* bytes = record.const_data_ptr<std::uint8_t>();
  return {bytes, bytes + record.numel()};
}

TEST(WireCodes, CountBytes) {
  for (const auto& format : kFormats) {
    EXPECT_EQ(wire_bytes(format, 0), 0);
    for (std::int64_t numel = 1; numel < 9000; numel += 37) {
      EXPECT_EQ(wire_bytes(format, numel) % 4, 0);
    }
  }
  EXPECT_EQ(wire_bytes(kInt8, 1), 4 + 4);
  EXPECT_EQ(wire_bytes(kInt8, 128), 4 + 128);
  EXPECT_EQ(wire_bytes(kInt8, 129), 4 + 128 + 4);
  EXPECT_EQ(wire_bytes(kInt4, 3 * 128), 8 + 3 * 64);
  EXPECT_EQ(wire_bytes(kInt4, 128 + 65), 4 + 2 * 64);
  EXPECT_EQ(wire_bytes(kInt2, 128 + 5), 4 + 32 + 8);
  EXPECT_EQ(wire_bytes(kSparse, 4096), 4 + 16 * 7);
  EXPECT_EQ(wire_bytes(kSparse, 4097), 8 + 16 * 7 + 8);
  EXPECT_EQ(wire_bytes({WireCode::Sparse, 1}, 3), 4 + 8);
  EXPECT_EQ(wire_bytes({WireCode::Sparse, 1}, 4096), 4 + 1024 * 7);
  // 412 elements are sent: 721 bytes.
  EXPECT_EQ(wire_bytes({WireCode::Sparse, 0.1}, 4096), 4 + 724);
  EXPECT_EQ(wire_bytes({WireCode::Sparse, 0.1}, 8192), 8 + 1444);
}

// The scale is 1, or 0x3F80 in bf16.
TEST(WireCodes, LayOutIntegersOfEightBits) {
  const Sent sent = send(at::tensor({127.0f, -3.5f, 2.5f, 0.4f, -0.6f}), kInt8);
  EXPECT_EQ(
      bytes_of(sent.record), (std::vector<int>{0x80, 0x3F, 0, 0, 127, 0xFC, 2, 0, 0xFF, 0, 0, 0}));
  EXPECT_TRUE(sent.rest.equal(at::tensor({0.0f, 0.5f, 0.5f, 0.4f, -0.6f + 1.0f})));
}

TEST(WireCodes, LayOutIntegersOfFourBits) {
  const at::Tensor u = at::zeros({2 * 128 + 3});
  u[0].fill_(7);
  u[1].fill_(-2.5);
  u[64].fill_(-7);
  u[65].fill_(1.5);
  u[258].fill_(-14);
  const Sent sent = send(u, kInt4);
  std::vector<int> wanted(8 + 2 * 64 + 4);
  wanted[0] = 0x80;
  wanted[1] = 0x3F;
  wanted[5] = 0x40;  // 2
  wanted[8] = 0x97;
  wanted[9] = 0x2E;
  wanted[8 + 2 * 64 + 2] = 0x09;
  EXPECT_EQ(bytes_of(sent.record), wanted);
}

TEST(WireCodes, LayOutFourLevels) {
  // The root mean square is below 3, and above 1.
  const at::Tensor u = at::full({128 + 34}, 1.0f);
  u[0].fill_(-3);
  u[96].fill_(3);
  u[128 + 33].fill_(-3);
  u[128 + 32].fill_(-1);
  const Sent sent = send(u, kInt2);
  std::vector<int> wanted(4 + 2 * 32);
  wanted[0] = wanted[2] = 0x80;
  wanted[1] = wanted[3] = 0x3F;
  wanted[4] = 3 | 1 << 6;
  wanted[4 + 32] = 2 << 2;
  wanted[4 + 32 + 1] = 3 << 2;
  EXPECT_EQ(bytes_of(sent.record), wanted);
  EXPECT_TRUE(sent.value.equal(u));
  EXPECT_TRUE(sent.rest.eq(0).all().item<bool>());
}

TEST(WireCodes, LayOutWhatIsSparse) {
  // Four of six are sent: means of 1.5 (0x3FC0) and 4 (0x4080).
  const Sent sent =
      send(at::tensor({0.0f, 4.0f, -1.0f, 0.5f, -2.0f, 4.0f}), {WireCode::Sparse, 0.5});
  const int codes = 1 | 2 << 2 | 2 << 4 | 1 << 6;
  EXPECT_EQ(
      bytes_of(sent.record),
      (std::vector<int>{0xC0, 0x3F, 0x80, 0x40, 1, 0x20, 0, 4, 0x50, 0, codes, 0}));
  EXPECT_TRUE(sent.rest.equal(at::tensor({0.0f, 0.0f, 0.5f, 0.5f, -0.5f, 0.0f})));
  EXPECT_TRUE(sent.value.equal(at::tensor({0.0f, 4.0f, -1.5f, 0.0f, -1.5f, 4.0f})));
}

TEST(WireCodes, LeaveWhatIsNotSent) {
  for (const auto& format : kFormats) {
    for (const std::int64_t numel : kNumels) {
      // An odd begin: nothing is aligned.
      for (const std::int64_t begin : {0, 1}) {
        const at::Tensor u = randn(numel + begin, 1).narrow(0, begin, numel);
        const Sent sent = send(u, format);
        ASSERT_TRUE(sent.rest.equal(u.sub(sent.value))) << name_of(format) << ", " << numel;
        if (format.code == WireCode::Int8 || format.code == WireCode::Int4) {
          ASSERT_TRUE(sent.rest.add(sent.value).equal(u));
        }
      }
    }
  }
}

TEST(WireCodes, AddUpInFp64RoundedOnce) {
  const float third = 1.0f / 3;
  for (const auto& format : kFormats) {
    for (const std::int64_t numel : kNumels) {
      const Sent sent = send(randn(numel, 2), format);
      const at::Tensor exact = sent.value.to(at::kDouble).mul(double{third});
      const at::Tensor out = randn(numel, 3);
      const at::Tensor wanted = exact.add(out.to(at::kDouble)).to(at::kFloat);
      decode_wire(sent.record, format, third, true, out);
      ASSERT_TRUE(out.equal(wanted)) << name_of(format) << ", " << numel;
      decode_wire(sent.record, format, third, false, out);
      ASSERT_TRUE(out.equal(exact.to(at::kFloat)));
    }
  }
}

TEST(WireCodes, RefuseWhatDoesNotFit) {
  const at::Tensor u = at::zeros({1000});
  const auto record = [](std::int64_t bytes) { return at::empty({bytes}, at::kByte); };
  for (const auto& format : kFormats) {
    const std::int64_t bytes = wire_bytes(format, 1000);
    EXPECT_THROW(encode_wire(u, format, record(bytes - 1)), std::logic_error);
    EXPECT_THROW(encode_wire(u, format, record(bytes + 2).narrow(0, 2, bytes)), std::logic_error);
    EXPECT_THROW(decode_wire(record(bytes), format, 1, true, u.to(at::kDouble)), std::logic_error);
    encode_wire(u, format, record(bytes + 4).narrow(0, 4, bytes));
    encode_wire(at::empty({0}), format, record(0));
  }
  for (const double density : {0.0, -0.1, 1.01, std::nan("")}) {
    EXPECT_THROW(wire_bytes({WireCode::Sparse, density}, 1), std::logic_error);
  }
}

}  // namespace
}  // namespace abtrain::ops
