// Products of rows of 8-bit records (ops/difference_codes.h).
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "device/tensor_text.h"
#include "ops/cpu/code_blocks.h"
#include "ops/difference_codes.h"
#include "ops/flat_check.h"

namespace abtrain::ops {

namespace {

// Records per part: within a part sums are taken in fp32, over parts in fp64.
constexpr std::int64_t kPart = 64;

struct Rows {
  std::vector<const std::uint8_t*> begins;
  std::int64_t records = 0;  // records per row
};

Rows rows_of(
    const at::Tensor& records, const std::vector<std::int64_t>& places, const at::Tensor& sum) {
  ABT_ASSERT(
      records.dim() == 2 && records.is_contiguous() && records.is_cpu() &&
          records.scalar_type() == at::kByte && records.size(1) % kRecordBytes == 0,
      "records: {}", records.sizes());
  Rows rows;
  rows.records = records.size(1) / kRecordBytes;
  check_flat(sum, at::kFloat, rows.records * kRecordNumbers, at::kCPU, "records: sum");
  for (const std::int64_t place : places) {
    ABT_ASSERT(place >= 0 && place < records.size(0), "records: row {}", place);
    rows.begins.push_back(records.const_data_ptr<std::uint8_t>() + place * records.size(1));
  }
  return rows;
}

using kernels::scale_of;

ABT_INLINE void widen(const std::uint8_t* record, std::int16_t* codes) {
  for (int i = 0; i < kRecordNumbers; ++i) {
    codes[i] = static_cast<std::int8_t>(record[i]);
  }
}

// The result is at most 256 * 127^2, which fits 32 bits.
ABT_INLINE std::int32_t whole_product(const std::int16_t* a, const std::int16_t* b) {
  std::int32_t sum = 0;
  for (int i = 0; i < kRecordNumbers; ++i) {
    sum += std::int32_t{a[i]} * std::int32_t{b[i]};
  }
  return sum;
}

ABT_INLINE float product_with(const float* sum, const std::int16_t* codes) {
  constexpr int kWidth = 32;
  float lanes[kWidth] = {};
  for (int i = 0; i < kRecordNumbers; i += kWidth) {
    for (int k = 0; k < kWidth; ++k) {
      lanes[k] = ::fmaf(sum[i + k], static_cast<float>(codes[i + k]), lanes[k]);
    }
  }
  return add_by_halves(lanes, kWidth);
}

// Adds record b of every row to the products.
ABT_INLINE void multiply(
    const Rows& rows, std::int64_t b, const float* sum, std::int16_t* scratch, float* scales,
    float* products) {
  const std::size_t n = rows.begins.size();
  for (std::size_t j = 0; j < n; ++j) {
    const std::uint8_t* const record = rows.begins[j] + b * kRecordBytes;
    std::int16_t* const codes = scratch + j * kRecordNumbers;
    widen(record, codes);
    scales[j] = scale_of(record);
    for (std::size_t i = 0; i < j; ++i) {
      const auto whole = static_cast<float>(whole_product(codes, scratch + i * kRecordNumbers));
      *products = ::fmaf(scales[j] * scales[i], whole, *products);
      ++products;
    }
    *products = ::fmaf(scales[j], product_with(sum + b * kRecordNumbers, codes), *products);
    ++products;
  }
}

}  // namespace

void difference_products(
    const at::Tensor& records, const std::vector<std::int64_t>& places, const at::Tensor& sum,
    const at::Tensor& triangle) {
  const Rows rows = rows_of(records, places, sum);
  const auto n = static_cast<std::int64_t>(places.size());
  const std::int64_t products = n * (n + 1) / 2;
  check_flat(triangle, at::kFloat, products, at::kCPU, "difference_products: triangle");
  const std::int64_t count = (rows.records + kPart - 1) / kPart;
  const at::Tensor parts = at::zeros({count * products});
  auto* const all = parts.mutable_data_ptr<float>();
  const auto* const s = sum.const_data_ptr<float>();
  // Parts are large, so a single one is worth a thread.
  for_blocks(
      count,
      [&](std::int64_t part) ABT_INLINED {
        std::vector<std::int16_t> scratch(static_cast<std::size_t>(n) * kRecordNumbers);
        std::vector<float> scales(static_cast<std::size_t>(n));
        const std::int64_t end = std::min(rows.records, (part + 1) * kPart);
        for (std::int64_t b = part * kPart; b < end; ++b) {
          multiply(rows, b, s, scratch.data(), scales.data(), all + part * products);
        }
      },
      /*grain=*/1);
  auto* const out = triangle.mutable_data_ptr<float>();
  for (std::int64_t p = 0; p < products; ++p) {
    double total = 0;
    for (std::int64_t part = 0; part < count; ++part) {
      total += static_cast<double>(all[part * products + p]);
    }
    out[p] = static_cast<float>(total);
  }
}

void add_differences(
    const at::Tensor& records, const std::vector<std::int64_t>& places, const at::Tensor& signs,
    const at::Tensor& sum) {
  const Rows rows = rows_of(records, places, sum);
  check_flat(
      signs, at::kChar, static_cast<std::int64_t>(places.size()), at::kCPU,
      "add_differences: signs");
  const auto* const chosen = signs.const_data_ptr<std::int8_t>();
  auto* const s = sum.mutable_data_ptr<float>();
  for_blocks(rows.records, [&](std::int64_t b) ABT_INLINED {
    float* const to = s + b * kRecordNumbers;
    for (std::size_t j = 0; j < rows.begins.size(); ++j) {
      const std::uint8_t* const record = rows.begins[j] + b * kRecordBytes;
      const float factor = static_cast<float>(chosen[j]) * scale_of(record);
      for (int i = 0; i < kRecordNumbers; ++i) {
        to[i] = ::fmaf(factor, static_cast<float>(static_cast<std::int8_t>(record[i])), to[i]);
      }
    }
  });
}

}  // namespace abtrain::ops
