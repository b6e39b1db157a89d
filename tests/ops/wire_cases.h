// Formats, sizes and what is sent, for the tests of wire codes.
#pragma once

#include <ATen/ops/full.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ops/wire_codes.h"
#include "tensors.h"

namespace abtrain::ops {

constexpr WireFormat kInt8{WireCode::Int8};
constexpr WireFormat kInt4{WireCode::Int4};
constexpr WireFormat kInt2{WireCode::Int2};
constexpr WireFormat kSparse{WireCode::Sparse};

inline const std::vector<WireFormat> kFormats = {
    kInt8, kInt4, kInt2, kSparse, {WireCode::Sparse, 0.3}, {WireCode::Sparse, 1}};

inline std::string name_of(const WireFormat& format) {
  return "code " + std::to_string(static_cast<int>(format.code)) + ", density " +
         std::to_string(format.density);
}

struct Sent {
  at::Tensor record, rest, value;
};
inline Sent send(const at::Tensor& u, const WireFormat& format) {
  const Sent sent{
      at::full({wire_bytes(format, u.numel())}, 0xAB, at::kByte), u.clone(),
      at::full({u.numel()}, 9.0f)};
  encode_wire(sent.rest, format, sent.record);
  decode_wire(sent.record, format, 1, false, sent.value);
  return sent;
}

// Scale number `index` of a record.
inline double scale_in(const at::Tensor& record, std::int64_t index) {
  std::uint16_t bits;
  std::memcpy(&bits, record.const_data_ptr<std::uint8_t>() + 2 * index, sizeof(bits));
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

inline double norm_of(const float* x, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += double{x[i]} * x[i];
  }
  return std::sqrt(sum);
}

}  // namespace abtrain::ops
