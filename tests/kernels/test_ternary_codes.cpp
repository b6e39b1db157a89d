#include "ops/ternary_codes.h"

#include "code_buffers.h"
#include "ops/magnitudes.h"

namespace abtrain::ops {
namespace {

// Tensors that begin anywhere, several in one packed byte, one over many blocks.
const std::vector<std::int64_t> kSizes = {1, 2, 5, 4099, 1, 9001, 30};

TernaryTable table_of(const std::vector<std::int64_t>& sizes, bool packed) {
  std::vector<CodeBlocks::Tensor> tensors;
  for (const std::int64_t numel : sizes) {
    tensors.push_back({tensors.empty() ? 0 : tensors.back().begin + tensors.back().numel, numel});
  }
  return TernaryTable(CodeBlocks(tensors), packed);
}

std::vector<TernaryTable> ternary_tables(const Forms& forms) {
  std::vector<TernaryTable> tables;
  for (CodeBlocks& blocks : block_sets(forms)) {
    tables.emplace_back(std::move(blocks));
  }
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {1}, {3, 4096, 5, 1}, {4099, 2, 4090, 31}, {1, 2, 5, 4099, 1, 9001}}) {
    tables.push_back(table_of(sizes, /*packed=*/true));
  }
  return tables;
}

// One number of `each` per tensor of kSizes, repeated for its elements.
at::Tensor spread(const at::Tensor& each) {
  return each.repeat_interleave(at::tensor(kSizes, at::kLong));
}

struct Encoded {
  at::Tensor rest, wire;
};
Encoded encoded(
    const Forms& forms, const at::Tensor& u, TernaryTable& table, const at::Tensor& levels,
    const TernaryRule& rule, CodeForm code) {
  const std::int64_t bytes = code_bytes(table.on(at::kCPU).codes, code);
  const auto [rest, wire] = forms.same([&](const Form& form) {
    const std::array out{form.of(u), form.blank({bytes}, at::kByte)};
    TernaryRule own = rule;
    own.cuts = rule.cuts.defined() ? form.of(rule.cuts) : at::Tensor();
    encode_ternary(out[0], table, form.of(levels), own, code, out[1]);
    return out;
  });
  return {rest, wire};
}

at::Tensor record_of(const at::Tensor& levels, const at::Tensor& codes) {
  return at::cat({levels.view(at::kByte), codes});
}

// The gaps of a table keep what was there.
at::Tensor mean_of_records(
    const Forms& forms, const std::vector<at::Tensor>& records, TernaryTable& table) {
  return forms.same([&](const Form& form) {
    const at::Tensor mean = form.of(at::full({table.blocks().end()}, 7.0f));
    average_records(form.of(at::cat(records)), static_cast<int>(records.size()), table, mean);
    return mean;
  });
}

at::Tensor mean_of(
    const Forms& forms, const at::Tensor& in, CodeWire wire, int workers, TernaryTable& table,
    const at::Tensor& levels) {
  return forms.same([&](const Form& form) {
    const at::Tensor mean = form.of(at::full({table.blocks().end()}, 7.0f));
    average_codes(form.of(in), wire, workers, table, form.of(levels), mean);
    return mean;
  });
}

at::Tensor sums_of(
    const Forms& forms, const at::Tensor& shards, int workers, CodeBlocks& blocks,
    CodeBlocks::Range part) {
  return forms.same([&](const Form& form) {
    const at::Tensor words = form.blank({sum_words(blocks, part, workers)}, at::kInt);
    pack_sums(form.of(shards), workers, blocks, part, words);
    return words;
  });
}

// MXNet's published example, t = 4.
ABT_OP_TEST(TernaryCodes, AreMxnets) {
  TernaryTable table = table_of({10}, /*packed=*/false);
  const at::Tensor u = at::tensor({-9., -1., 2., 6., 8., 7., 0., -5., -10., -100.}, at::kFloat);
  const at::Tensor t = at::full({1}, 4.0f);
  const TernaryRule rule{.cuts = cuts_at(t), .keeps_rest = true};
  const auto [rest, wire] = encoded(forms, u, table, t, rule, CodeForm::TwoBits);
  EXPECT_TRUE(wire.equal(at::tensor({0x83, 0xF2, 0xA0, 0, 0, 0, 0, 0}, at::kByte)));
  EXPECT_TRUE(rest.equal(at::tensor({-5., -1., 2., 2., 4., 3., 0., -1., -6., -96.}, at::kFloat)));
}

// The specification's example of the threshold quantizer, c = 0.7.
ABT_OP_TEST(TernaryCodes, AreThoseOfTheWorkedExample) {
  TernaryTable table = table_of({4}, /*packed=*/true);
  const at::Tensor u = at::tensor({.1, -.2, .9, -1.2}, at::kFloat);
  const at::Tensor cuts = at::full({1}, .7f * .6f);
  const at::Tensor sums = at::empty({2});
  magnitudes(u, table.blocks(), Statistic::Above, sums, cuts);
  EXPECT_FLOAT_EQ(sums[0].item<float>(), 2.1f);
  EXPECT_EQ(number(sums[1]), 2);
  const at::Tensor level = at::full({1}, 1.05f);
  const TernaryRule rule{.cuts = cuts, .keeps_rest = true};
  const auto [rest, codes] = encoded(forms, u, table, level, rule, CodeForm::TwoBits);
  EXPECT_TRUE(codes.equal(at::tensor({0b00'00'11'10}, at::kByte)));
  EXPECT_TRUE(mean_of_records(forms, {record_of(level, codes)}, table)
                  .equal(at::tensor({0., 0., 1.05, -1.05}, at::kFloat)));
  EXPECT_TRUE(rest.allclose(at::tensor({.1, -.2, -.15, -.15}, at::kFloat)));
}

ABT_OP_TEST(TernaryCodes, TheCutItselfIsNotSentAndAThresholdIs) {
  TernaryTable table = table_of({4}, /*packed=*/true);
  const at::Tensor u = at::tensor({0.5, -0.5, 0.5000001, 0.49999997}, at::kFloat);
  const at::Tensor half = at::full({1}, 0.5f);
  const auto codes_for = [&](const at::Tensor& cuts) {
    return number(encoded(forms, u, table, half, {.cuts = cuts}, CodeForm::TwoBits).wire);
  };
  EXPECT_EQ(codes_for(half), 0b00'00'11'00);
  EXPECT_EQ(codes_for(cuts_at(half)), 0b11'10'11'00);
}

TEST(TernaryCodes, SumsHaveTheBitsThatTheyNeed) {
  for (const int n : {1, 2, 3, 4, 7, 8, 16, 100, 128, 1000}) {
    EXPECT_EQ(sum_bits(n), std::ceil(std::log2(2.0 * n + 1))) << n;
  }
}

// All ways from codes to a mean: of own levels against float64, of shared ones to the bit; and what
// is left.
ABT_OP_TEST(TernaryCodes, HaveTheMeansOfWhatTheyStandFor) {
  for (const auto& [packed, n] : cases({false, true}, {1, 2, 5, 127})) {
    TernaryTable table = table_of(kSizes, packed);
    CodeBlocks& blocks = table.blocks();
    const std::int64_t tensors = blocks.tensors();
    const at::Tensor cuts = randn(tensors, 6).abs();
    const at::Tensor shared = randn(tensors, 70).abs();
    std::vector<at::Tensor> records, codes;
    at::Tensor own_sum = at::zeros({blocks.end()}, at::kDouble), signs = at::zeros({blocks.end()});
    at::Tensor bytes = at::zeros({table.on(at::kCPU).codes}, at::kInt);
    for (int w = 0; w < n; ++w) {
      const at::Tensor u = randn(blocks.end(), 50 + w);
      const at::Tensor own = randn(tensors, 500 + w).abs();
      const at::Tensor sign = u.sign() * u.abs().gt(spread(cuts));
      own_sum += sign * spread(own);
      signs += sign;
      const Encoded kept = encoded(forms, u, table, own, {.cuts = cuts}, CodeForm::TwoBits);
      EXPECT_TRUE(kept.rest.equal(u));
      codes.push_back(kept.wire);
      records.push_back(record_of(own, kept.wire));
      const TernaryRule rule{.cuts = cuts, .keeps_rest = true};
      const Encoded sent = encoded(forms, u, table, own, rule, CodeForm::Bytes);
      EXPECT_TRUE(sent.rest.equal(u - sign * spread(own)));
      bytes += sent.wire;
    }
    EXPECT_LT(distance(mean_of_records(forms, records, table), own_sum / n), 1e-6);
    const at::Tensor mean = mean_of(forms, at::cat(codes), CodeWire::Codes, n, table, shared);
    EXPECT_TRUE(
        mean.equal(packed ? signs.mul(spread(shared)).div(n) : signs.mul(spread(shared.div(n)))));
    const auto equals_mean = [&](const at::Tensor& in, CodeWire wire) {
      return mean_of(forms, in, wire, n, table, shared).equal(mean);
    };
    EXPECT_TRUE(equals_mean(bytes.to(at::kByte), CodeWire::Bytes));
    if (packed) {
      continue;
    }
    // Two shares of the blocks, the second one with parts of two tensors.
    std::vector<at::Tensor> words;
    for (const auto& part : {blocks.share(2, 0), blocks.share(2, 1)}) {
      std::vector<at::Tensor> shards;
      for (const at::Tensor& each : codes) {
        shards.push_back(each.narrow(
            0, 8 * blocks.groups_before(part.begin), code_bytes(blocks, part, CodeForm::TwoBits)));
      }
      words.push_back(sums_of(forms, at::cat(shards), n, blocks, part));
    }
    EXPECT_TRUE(equals_mean(at::cat(words), CodeWire::Planes));
  }
}

ABT_OP_TEST(TernaryCodes, AreSentByChanceWithoutABias) {
  // Every number 4,000 times.
  const std::vector<double> values = {0, 1e-3, 0.1, -0.25, 0.7, -1};
  constexpr std::int64_t kTimes = 4000;
  TernaryTable table = table_of({std::ssize(values) * kTimes}, /*packed=*/true);
  const at::Tensor u = at::tensor(values, at::kFloat).repeat_interleave(kTimes);
  const auto sent = [&](std::uint64_t seed, std::uint32_t step, std::uint32_t stream) {
    const TernaryRule rule{
        .random = kernels::random_stream(seed, kernels::RandomPurpose::Rounding, step, stream)};
    return encoded(forms, u, table, at::ones({1}), rule, CodeForm::Bytes).wire.to(at::kInt) - 1;
  };
  const at::Tensor codes = sent(9, 4, 0);
  const at::Tensor sums = codes.view({-1, kTimes}).sum(1);
  for (std::size_t v = 0; v < values.size(); ++v) {
    const double p = std::abs(values[v]);
    const double deviation = std::sqrt(kTimes * p * (1 - p));
    EXPECT_NEAR(number(sums[static_cast<std::int64_t>(v)]), kTimes * values[v], 4 * deviation);
  }
  // Other seeds, steps and streams have other numbers, the same ones the same.
  EXPECT_TRUE(sent(9, 4, 0).equal(codes));
  EXPECT_FALSE(sent(8, 4, 0).equal(codes));
  EXPECT_FALSE(sent(9, 5, 0).equal(codes));
  EXPECT_FALSE(sent(9, 4, 1).equal(codes));
}

ABT_OP_TEST(TernaryCodes, ShowWhatIsNotFinite) {
  TernaryTable table = table_of({50, 70}, /*packed=*/false);
  CodeBlocks& blocks = table.blocks();
  const at::Tensor t = at::full({2}, 0.5f);
  for (const float bad : kNotFinite) {
    const at::Tensor u = at::ones({2, 120});
    u[0][60].fill_(bad);
    for (const int place : {0, 1}) {
      const auto codes_of = [&](const at::Tensor& x) {
        return encoded(forms, x, table, t, {.cuts = cuts_at(t)}, CodeForm::TwoBits).wire;
      };
      const at::Tensor all = at::cat({codes_of(u[place]), codes_of(u[1 - place])});
      const at::Tensor mean = mean_of(forms, all, CodeWire::Codes, 2, table, t);
      EXPECT_TRUE(mean[60].isnan().item<bool>());
      EXPECT_EQ(number(mean.eq(0.5f).sum()), 119);
      const at::Tensor words = sums_of(forms, all, 2, blocks, blocks.all());
      EXPECT_TRUE(mean_of(forms, words, CodeWire::Planes, 2, table, t)
                      .allclose(mean, 0, 0, /*equal_nan=*/true));
    }
  }
}

ABT_OP_TEST(TernaryCodes, ShowThatNoWorkerIsFinite) {
  TernaryTable table = table_of({50, 70}, /*packed=*/false);
  const at::Tensor t = at::full({2}, 0.5f);
  const at::Tensor u = at::full({120}, kNotFinite[0]);
  const at::Tensor codes =
      encoded(forms, u, table, t, {.cuts = cuts_at(t)}, CodeForm::TwoBits).wire;
  for (const int workers : {1, 2048, kMaxCodeWorkers}) {
    const at::Tensor all = codes.repeat({workers});
    EXPECT_TRUE(
        mean_of(forms, all, CodeWire::Codes, workers, table, t).isnan().all().item<bool>())
        << workers;
  }
}

// By levels that follow from the elements.
ABT_OP_TEST(TernaryCodes, ShowInTheirTensorWhatIsNotFinite) {
  for (const auto& [packed, bad] : cases({false, true}, kNotFinite)) {
    TernaryTable table = table_of({50, 70}, packed);
    const at::Tensor u = randn(120, 3);
    u[60].fill_(bad);
    const at::Tensor most = at::empty({2});
    magnitudes(u, table.blocks(), Statistic::Largest, most);
    const TernaryRule rule{.cuts = packed ? at::Tensor() : most};
    const at::Tensor bytes = encoded(forms, u, table, most, rule, CodeForm::Bytes).wire;
    const at::Tensor codes = encoded(forms, u, table, most, rule, CodeForm::TwoBits).wire;
    for (const at::Tensor& mean :
         {mean_of(forms, bytes, CodeWire::Bytes, 1, table, most),
          mean_of_records(forms, {record_of(most, codes)}, table)}) {
      EXPECT_TRUE(mean.narrow(0, 0, 50).isfinite().all().item<bool>());
      EXPECT_FALSE(mean.narrow(0, 50, 70).isfinite().any().item<bool>());
    }
  }
}

ABT_OP_TEST(TernaryCodes, OfAnyNumbersHaveTheSameBits) {
  for (TernaryTable& table : ternary_tables(forms)) {
    const std::int64_t tensors = table.blocks().tensors();
    const at::Tensor values = odd_numbers(table.blocks().end(), 3);
    values[values.numel() / 4].fill_(-0.7f);
    const at::Tensor levels = randn(tensors, 8).abs_().add_(0.1);
    levels[0].fill_(NAN);
    const bool packed = table.on(at::kCPU).tensors != nullptr;
    for (const auto& [cut, code] :
         cases({0.7f, 0.0f, 1e9f, NAN, -1.0f}, {CodeForm::TwoBits, CodeForm::Bytes})) {
      if (cut != -1 || packed) {  // -1: by chance
        const TernaryRule rule{
            .cuts = cut == -1 ? at::Tensor() : at::full({tensors}, cut),
            .random = kernels::random_stream(5, kernels::RandomPurpose::Rounding, 11, 3),
            .keeps_rest = code == CodeForm::TwoBits};
        encoded(forms, values, table, levels, rule, code);
      }
    }
  }
}

// What is not finite among random codes.
at::Tensor some_codes(std::int64_t bytes) {
  const at::Tensor codes = random_bytes(bytes, 2);
  // The code 1 is rare: without its bit, save in some bytes.
  codes.bitwise_and_(0xAA).bitwise_or_(codes.bitwise_right_shift(1));
  codes[bytes / 2].fill_(0x1B);
  return codes;
}

ABT_OP_TEST(TernaryCodes, MeansOfAnyCodesHaveTheSameBits) {
  for (TernaryTable& table : ternary_tables(forms)) {
    CodeBlocks& blocks = table.blocks();
    const kernels::TernaryBlocks all = table.on(at::kCPU);
    const at::Tensor levels = randn(blocks.tensors(), 8).abs_();
    for (const auto& [workers] : cases({1, 2, 5, 70, 200})) {
      const at::Tensor codes = some_codes(workers * kernels::packed_bytes(all.codes));
      mean_of(forms, codes, CodeWire::Codes, workers, table, levels);
      if (all.tensors == nullptr) {
        const CodeBlocks::Range part = blocks.share(2, 1);
        sums_of(
            forms, some_codes(workers * code_bytes(blocks, part, CodeForm::TwoBits)), workers,
            blocks, part);
        // Sums of any bits, those that no codes make among them.
        const std::int64_t words = sum_words(blocks, blocks.all(), workers);
        mean_of(
            forms, random_bytes(4 * words, 5).view(at::kInt), CodeWire::Planes, workers, table,
            levels);
      }
      if (workers <= kernels::kMaxByteWorkers) {
        mean_of(forms, random_bytes(all.codes, 6), CodeWire::Bytes, workers, table, levels);
      }
      std::vector<at::Tensor> records;
      for (const at::Tensor& each : codes.view({workers, -1}).unbind()) {
        records.push_back(record_of(randn(blocks.tensors(), 20 + records.size()), each));
      }
      mean_of_records(forms, records, table);
    }
  }
}

TEST(TernaryCodes, RefuseWhatDoesNotFit) {
  EXPECT_REFUSED(TernaryTable(CodeBlocks({{0, 3}, {4, 5}}), /*packed=*/true));
  const at::Tensor u = at::zeros({100}), one = at::zeros({1});
  for (const bool packed : {false, true}) {
    TernaryTable table = table_of({100}, packed);
    const auto encode = [&](const TernaryRule& rule, CodeForm form, std::int64_t more) {
      const std::int64_t bytes = code_bytes(packed ? 100 : 128, form) + more;
      encode_ternary(u, table, one, rule, form, at::empty({bytes}, at::kByte));
    };
    for (const CodeForm form : {CodeForm::TwoBits, CodeForm::Bytes}) {
      EXPECT_NO_THROW(encode({.cuts = one}, form, 0));
      EXPECT_NO_THROW(encode({.cuts = one}, form, 8));
      EXPECT_REFUSED(encode({.cuts = one}, form, -1));
      EXPECT_REFUSED(encode({.cuts = at::empty({0})}, form, 0));
    }
    if (!packed) {
      EXPECT_REFUSED(encode({}, CodeForm::TwoBits, 0));
    }
    EXPECT_REFUSED(average_codes(
        at::zeros({128}, at::kByte), CodeWire::Bytes, 128, table, one, at::empty({100})));
  }
}

}  // namespace
}  // namespace abtrain::ops
