#include "ops/wire_codes.h"

#include <ostream>

#include "op_test.h"

namespace abtrain::ops {

// For the names of cases.
static std::ostream& operator<<(std::ostream& out, const WireFormat& format) {
  return out << "code " << static_cast<int>(format.code) << ", density " << format.density;
}

namespace {

constexpr WireFormat kInt8{WireCode::Int8};
constexpr WireFormat kInt4{WireCode::Int4};
constexpr WireFormat kInt2{WireCode::Int2};
constexpr WireFormat kSparse{WireCode::Sparse};
constexpr WireFormat sparse(double density) {
  return {WireCode::Sparse, density};
}
constexpr WireFormat kFormats[] = {
    kInt8, kInt4, kInt2, kSparse, sparse(0.3), sparse(1), sparse(1.0 / 1024)};

bool is_integer(const WireFormat& format) {
  return format.code == WireCode::Int8 || format.code == WireCode::Int4;
}

struct Sent {
  at::Tensor record, rest, value;
};
Sent send(
    const Forms& forms, const at::Tensor& u, const WireFormat& format, std::int64_t offset = 0) {
  const auto [record, rest, value] = forms.same([&](const Form& form) {
    const std::array out{
        form.blank({wire_bytes(format, u.numel())}, at::kByte), form.of(u, offset),
        form.blank({u.numel()}, at::kFloat, offset)};
    encode_wire(out[1], format, out[0]);
    decode_wire(out[0], format, 1, false, out[2]);
    return out;
  });
  return {record, rest, value};
}

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
  EXPECT_EQ(wire_bytes(sparse(1), 3), 4 + 8);
  EXPECT_EQ(wire_bytes(sparse(1), 4096), 4 + 1024 * 7);
  // 412 elements are sent: 721 bytes.
  EXPECT_EQ(wire_bytes(sparse(0.1), 4096), 4 + 724);
  EXPECT_EQ(wire_bytes(sparse(0.1), 8192), 8 + 1444);
}

// The scale is 1, or 0x3F80 in bf16.
ABT_OP_TEST(WireCodes, LayOutIntegersOfEightBits) {
  const Sent sent = send(forms, at::tensor({127.0f, -3.5f, 2.5f, 0.4f, -0.6f}), kInt8);
  EXPECT_EQ(
      bytes_of(sent.record), (std::vector<int>{0x80, 0x3F, 0, 0, 127, 0xFC, 2, 0, 0xFF, 0, 0, 0}));
  EXPECT_TRUE(sent.rest.equal(at::tensor({0.0f, 0.5f, 0.5f, 0.4f, -0.6f + 1.0f})));
}

ABT_OP_TEST(WireCodes, LayOutIntegersOfFourBits) {
  const at::Tensor u = at::zeros({2 * 128 + 3});
  for (const auto& [i, x] : {std::pair{0, 7.}, {1, -2.5}, {64, -7.}, {65, 1.5}, {258, -14.}}) {
    u[i].fill_(x);
  }
  std::vector<int> wanted(8 + 2 * 64 + 4);
  wanted[0] = 0x80;
  wanted[1] = 0x3F;
  wanted[5] = 0x40;  // 2
  wanted[8] = 0x97;
  wanted[9] = 0x2E;
  wanted[8 + 2 * 64 + 2] = 0x09;
  EXPECT_EQ(bytes_of(send(forms, u, kInt4).record), wanted);
}

ABT_OP_TEST(WireCodes, LayOutFourLevels) {
  // The root mean square is below 3, and above 1.
  const at::Tensor u = at::ones({128 + 34});
  for (const auto& [i, x] : {std::pair{0, -3.}, {96, 3.}, {128 + 33, -3.}, {128 + 32, -1.}}) {
    u[i].fill_(x);
  }
  const Sent sent = send(forms, u, kInt2);
  std::vector<int> wanted(4 + 2 * 32);
  wanted[0] = wanted[2] = 0x80;
  wanted[1] = wanted[3] = 0x3F;
  wanted[4] = 3 | 1 << 6;
  wanted[4 + 32] = 2 << 2;
  wanted[4 + 32 + 1] = 3 << 2;
  EXPECT_EQ(bytes_of(sent.record), wanted);
  EXPECT_TRUE(sent.value.equal(u));
  EXPECT_FALSE(sent.rest.any().item<bool>());
}

ABT_OP_TEST(WireCodes, LayOutWhatIsSparse) {
  // Four of six are sent: means of 1.5 (0x3FC0) and 4 (0x4080).
  const Sent sent = send(forms, at::tensor({0.0f, 4.0f, -1.0f, 0.5f, -2.0f, 4.0f}), sparse(0.5));
  const int codes = 1 | 2 << 2 | 2 << 4 | 1 << 6;
  EXPECT_EQ(
      bytes_of(sent.record),
      (std::vector<int>{0xC0, 0x3F, 0x80, 0x40, 1, 0x20, 0, 4, 0x50, 0, codes, 0}));
  EXPECT_TRUE(sent.rest.equal(at::tensor({0.0f, 0.0f, 0.5f, 0.5f, -0.5f, 0.0f})));
  EXPECT_TRUE(sent.value.equal(at::tensor({0.0f, 4.0f, -1.5f, 0.0f, -1.5f, 4.0f})));
}

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

// What is not sent is left, and records add up in fp64, rounded once.
ABT_OP_TEST(WireCodes, LeaveWhatIsNotSentAndAddUp) {
  // An odd offset: nothing is aligned.
  for (const auto& [format, numel, offset, kind] : cases(
           kFormats,
           {1L, 3L, 31L, 127L, 128L, 129L, 388L, 4095L, 4096L, 4097L, 4207L, 4225L, 9000L,
            kEmulated ? 20'001L : 300'001L},
           {0, 1}, {0, 1, 2})) {
    if (numel > 100'000 && kind > 0) {
      continue;
    }
    const at::Tensor u = kind == 0 ? randn(numel, 1) : some_change(numel, kind == 1);
    const Sent sent = send(forms, u, format, offset);
    const at::Tensor before = randn(numel, 2);
    constexpr float kThird = 1.0f / 3;
    const auto [sum, product] = forms.same([&](const Form& form) {
      const std::array out{form.of(before, offset), form.of(before, offset)};
      const at::Tensor record = form.of(sent.record);
      decode_wire(record, format, kThird, /*add=*/true, out[0]);
      decode_wire(record, format, kThird, /*add=*/false, out[1]);
      return out;
    });
    if (kind < 2) {
      EXPECT_TRUE(sent.rest.equal(u.sub(sent.value)));
      EXPECT_TRUE(!is_integer(format) || sent.rest.add(sent.value).equal(u));
      const at::Tensor exact = sent.value.to(at::kDouble).mul(double{kThird});
      EXPECT_TRUE(sum.equal(exact.add(before.to(at::kDouble)).to(at::kFloat)));
      EXPECT_TRUE(product.equal(exact.to(at::kFloat)));
    }
  }
}

// The scales that a record begins with, `each` of a chunk, in fp64.
at::Tensor scales_of(const at::Tensor& record, std::int64_t chunks, std::int64_t each = 1) {
  return record.narrow(0, 0, 2 * each * chunks)
      .view(at::kBFloat16)
      .to(at::kDouble)
      .view({chunks, each});
}

// Of chunks, which are padded with zeros.
at::Tensor norms_of_chunks(const at::Tensor& u, std::int64_t chunk) {
  return in_rows(u.to(at::kDouble), chunk).norm(2, 1);
}

ABT_OP_TEST(WireCodes, RoundToTheNearestInteger) {
  for (const auto& [format, most] : {std::pair(kInt8, 127.0), std::pair(kInt4, 7.0)}) {
    const at::Tensor u = randn(10'000, 4);
    const Sent sent = send(forms, u, format);
    const auto chunks = [](const at::Tensor& x) { return in_rows(x.to(at::kDouble), kWireChunk); };
    const at::Tensor scales = scales_of(sent.record, chunks(u).size(0));
    const at::Tensor exact = chunks(u).abs().amax(1, /*keepdim=*/true) / most;
    EXPECT_TRUE(scales.ge(exact * (1 - 1e-7)).all().item<bool>());
    EXPECT_TRUE(scales.le(exact * (1 + 0x1p-7)).all().item<bool>());
    const at::Tensor codes = chunks(sent.value) / scales;
    EXPECT_TRUE(codes.equal(codes.round()));
    EXPECT_LE(number(codes.abs().max()), most);
    EXPECT_LE(number((chunks(sent.rest) / scales).abs().max()), 0.5 * (1 + 1e-6));
  }
}

ABT_OP_TEST(WireCodes, FitFourLevelsByLeastSquares) {
  const at::Tensor u = randn(10'000, 5).mul_(1e-3);
  const Sent sent = send(forms, u, kInt2);
  for (std::int64_t begin = 0; begin < u.numel(); begin += kWireChunk) {
    const auto part = [begin](const at::Tensor& all) {
      return all.slice(0, begin, begin + kWireChunk).to(at::kDouble);
    };
    const at::Tensor x = part(u);
    const double scale = number(scales_of(sent.record, begin / kWireChunk + 1)[-1]);
    const double cut = 0.9957 * std::sqrt(number(x.square().mean()));
    const at::Tensor levels = part(sent.value) / scale;
    const at::Tensor wanted = x.sign() * (1 + 2 * x.abs().gt(cut).to(at::kDouble));
    const at::Tensor close = (x.abs() / cut - 1).abs().le(1e-6);
    EXPECT_TRUE(levels.eq(wanted).logical_or(close).all().item<bool>());
    const double best = number((levels * x).sum() / levels.square().sum());
    ASSERT_NEAR(scale, best, 0.51 * 0x1p-7 * scale);
  }
}

// Of equal magnitudes, those with lower indices.
ABT_OP_TEST(WireCodes, SendTheLargest) {
  for (const at::Tensor& u :
       {randn(9001, 6), randint(-6, 7, {9001}, 7, at::kFloat), at::full({5000}, -2.0f),
        // The magnitudes differ in their low bits only.
        randn(5000, 8).mul_(1e-4).add_(1)}) {
    for (const auto& [density] : cases({1.0 / 4096, 1.0 / 64, 0.1, 0.9999, 1.0})) {
      const Sent sent = send(forms, u, sparse(density));
      const at::Tensor wanted = at::zeros({u.numel()}, at::kDouble);
      for (std::int64_t begin = 0, c = 0; begin < u.numel(); begin += kSparseChunk, ++c) {
        const at::Tensor x = u.slice(0, begin, begin + kSparseChunk).to(at::kDouble);
        const auto count = static_cast<double>(x.numel());
        const double some = std::ceil(std::ceil(density * count) / 4) * 4;
        const at::Tensor order = std::get<1>(x.abs().sort(/*stable=*/true, 0, /*descending=*/true));
        const at::Tensor chosen = order.slice(0, 0, static_cast<std::int64_t>(some));
        const at::Tensor sizes = x.abs().index_select(0, chosen);
        // Equal magnitudes are below their mean, whatever its rounding.
        const at::Tensor is_upper = sizes.gt(sizes.mean() * (1 + 1e-12));
        const at::Tensor scales = scales_of(sent.record, c + 1, 2)[c];
        for (const int k : {0, 1}) {
          const at::Tensor own = sizes.masked_select(is_upper.eq(k));
          const double level = own.numel() == 0 ? 0 : number(own.mean());
          ASSERT_NEAR(number(scales[k]), level, 0.51 * 0x1p-7 * level);
        }
        const at::Tensor levels = scales.index_select(0, is_upper.to(at::kLong));
        wanted.slice(0, begin, begin + kSparseChunk)
            .index_copy_(0, chosen, levels.copysign(x.index_select(0, chosen)));
      }
      ASSERT_TRUE(sent.value.equal(wanted.to(at::kFloat)));
    }
  }
}

// In the 2-norm of each chunk; integers, in each element.
ABT_OP_TEST(WireCodes, AreContractions) {
  const std::int64_t numel = 3 * 4096 + 77;
  const at::Tensor one_hot = at::zeros({numel});
  one_hot.slice(0, 40, numel, 384).fill_(-2);
  const at::Tensor alternating = at::full({numel}, 0.3f);
  alternating.slice(0, 1, numel, 2).fill_(-0.3f);
  const std::vector<at::Tensor> inputs = {
      randn(numel, 9),
      randn(numel, 10).div_(randn(numel, 11)),  // Cauchy
      randn(numel, 12).mul_(1e-30),
      randn(numel, 12).mul_(1e+30),  // the squares overflow
      at::full({numel}, 0.1f),
      one_hot,
      alternating};
  for (const auto& [format, input] : cases(kFormats, {0u, 1u, 2u, 3u, 4u, 5u, 6u})) {
    const at::Tensor& u = inputs[input];
    const Sent sent = send(forms, u, format);
    EXPECT_TRUE(!is_integer(format) || sent.rest.abs().le(u.abs()).all().item<bool>());
    const std::int64_t chunk = format.code == WireCode::Sparse ? kSparseChunk : kWireChunk;
    const at::Tensor before = norms_of_chunks(u, chunk), rest = norms_of_chunks(sent.rest, chunk);
    EXPECT_TRUE(rest.eq(0).where(before.eq(0), rest.lt(before)).all().item<bool>());
  }
}

// Shares of the sum of squares; of integers, from the step of each chunk.
TEST(WireCodes, LeaveTheKnownShareOfAGaussian) {
  const at::Tensor u = randn(1 << 20, 13);
  const double all = number(u.to(at::kDouble).square().mean());
  const auto share = [&](const WireFormat& format) {
    const Sent sent = send(Forms({}), u, format);
    return number(sent.rest.to(at::kDouble).square().mean()) / all;
  };
  const at::Tensor largest = u.abs().view({-1, kWireChunk}).amax(1).to(at::kDouble);
  const auto of_steps = [&](double most) {
    return number(largest.div(most).square().div(12).mean()) / all;
  };
  EXPECT_NEAR(share(kInt8) / of_steps(127), 1, 0.05);
  EXPECT_NEAR(share(kInt4) / of_steps(7), 1, 0.05);
  EXPECT_NEAR(share(kInt2) / 0.1188, 1, 0.05);
  // Beyond t = 2.4176, with 1/64 of the elements, lies 2 t phi(t) + 1/64.
  EXPECT_NEAR(share(kSparse), 1 - 0.1194, 0.004);
}

ABT_OP_TEST(WireCodes, KeepZeros) {
  for (const auto& [format] : cases(kFormats)) {
    const at::Tensor u = at::zeros({10'000});
    u.narrow(0, 0, 4096).copy_(randn(4096, 14));
    u.narrow(0, 4096, 100).fill_(1e-39);  // too small for a scale
    const Sent sent = send(forms, u, format);
    EXPECT_FALSE(sent.value.slice(0, 4096).any().item<bool>());
    EXPECT_TRUE(sent.rest.slice(0, 4096).equal(u.slice(0, 4096)));
    EXPECT_TRUE(sent.value.narrow(0, 0, 4096).any().item<bool>());
  }
}

ABT_OP_TEST(WireCodes, ShowWhatIsNotFinite) {
  for (const auto& [format, bad] : cases(kFormats, kNotFinite)) {
    const at::Tensor u = randn(9000, 15);
    u[4500].fill_(bad);
    const Sent sent = send(forms, u, format);
    for (const at::Tensor& each : {sent.value, sent.rest}) {
      const at::Tensor finite = each.isfinite();
      EXPECT_FALSE(finite[4500].item<bool>());
      if (format.code != WireCode::Sparse) {
        EXPECT_FALSE(finite.narrow(0, 4480, 128).any().item<bool>());
      }
      // Other chunks are as they were.
      EXPECT_TRUE(finite.narrow(0, 0, 4096).all().item<bool>());
      EXPECT_TRUE(finite.slice(0, 8192).all().item<bool>());
    }
  }
}

TEST(WireCodes, RefuseWhatDoesNotFit) {
  const at::Tensor u = at::zeros({1000});
  const auto record = [](std::int64_t bytes) { return at::empty({bytes}, at::kByte); };
  for (const auto& [format] : cases(kFormats)) {
    const std::int64_t bytes = wire_bytes(format, 1000);
    EXPECT_REFUSED(encode_wire(u, format, record(bytes - 1)));
    EXPECT_REFUSED(encode_wire(u, format, record(bytes + 2).narrow(0, 2, bytes)));
    EXPECT_REFUSED(decode_wire(record(bytes), format, 1, true, u.to(at::kDouble)));
    encode_wire(u, format, record(bytes + 4).narrow(0, 4, bytes));
    // A record may be longer; what lies behind its end stays.
    const at::Tensor longer = at::full({bytes + 4}, 7, at::kByte);
    encode_wire(u, format, longer);
    EXPECT_TRUE(longer.narrow(0, bytes, 4).eq(7).all().item<bool>());
    encode_wire(at::empty({0}), format, record(0));
  }
  for (const double density : {0.0, -0.1, 1.01, std::nan("")}) {
    EXPECT_REFUSED(wire_bytes(sparse(density), 1));
  }
}

}  // namespace
}  // namespace abtrain::ops
