#include "ops/wire_codes.h"

#include <algorithm>
#include <cmath>

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

// The number of elements of a chunk that Sparse sends.
int sent_of(double density, std::int64_t count) {
  constexpr std::int64_t kGroup = kernels::kGroupNumbers;
  const auto wanted = static_cast<std::int64_t>(std::ceil(density * static_cast<double>(count)));
  return static_cast<int>(std::min(count, (wanted + kGroup - 1) / kGroup * kGroup));
}

// numel: at least 1.
kernels::WireLayout layout_of(const WireFormat& format, std::int64_t numel) {
  if (format.code != WireCode::Sparse) {
    return {format.code, numel, 0, 0};
  }
  ABT_ASSERT(
      format.density > 0 && format.density <= 1,
      "wire codes: expected a density above 0 and at most 1, got {}", format.density);
  return {
      format.code, numel, sent_of(format.density, kSparseChunk),
      sent_of(format.density, (numel - 1) % kSparseChunk + 1)};
}

void check_wire(const at::Tensor& numbers, const WireFormat& format, const at::Tensor& record) {
  const c10::Device device = numbers.device();
  check_flat(numbers, at::kFloat, 0, device, "wire codes: elements");
  check_flat(record, at::kByte, wire_bytes(format, numbers.numel()), device, "wire codes: record");
  ABT_ASSERT(
      reinterpret_cast<std::uintptr_t>(record.const_data_ptr()) % 4 == 0,
      "wire codes: expected a record that begins at a multiple of 4 bytes, got "
      "one at byte {} of its buffer",
      record.storage_offset());
}

}  // namespace

std::int64_t wire_bytes(const WireFormat& format, std::int64_t numel) {
  return numel == 0 ? 0 : kernels::wire_bytes(layout_of(format, numel));
}

void encode_wire(const at::Tensor& u, const WireFormat& format, const at::Tensor& record) {
  check_wire(u, format, record);
  if (u.numel() == 0) {
    return;
  }
  const kernels::EncodeWire job{
      layout_of(format, u.numel()), u.mutable_data_ptr<float>(),
      record.mutable_data_ptr<std::uint8_t>()};
  dispatch("encode_wire", job, u.device(), kernels::encode_wire);
}

void decode_wire(
    const at::Tensor& record, const WireFormat& format, float factor, bool add,
    const at::Tensor& out) {
  check_wire(out, format, record);
  if (out.numel() == 0) {
    return;
  }
  const kernels::DecodeWire job{
      layout_of(format, out.numel()), record.const_data_ptr<std::uint8_t>(), factor, add,
      out.mutable_data_ptr<float>()};
  dispatch("decode_wire", job, out.device(), kernels::decode_wire);
}

}  // namespace abtrain::ops
