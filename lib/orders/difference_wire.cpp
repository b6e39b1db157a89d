#include "orders/difference_wire.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sub.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "comm/traffic.h"
#include "ops/difference_codes.h"
#include "orders/coordination.h"

namespace abtrain::orders {

namespace {

DifferenceWire::Format format_of(const OrderOptions& options, std::int64_t numel) {
  if (options.wire == OrderWire::Int8) {
    return {
        .type = at::kByte,
        .items = ops::records_of(numel),
        .elements = ops::kRecordBytes,
        .numbers = ops::kRecordNumbers,
        .keeps_messages = true};
  }
  return {.items = numel};
}

}  // namespace

DifferenceWire::DifferenceWire(const OrderOptions& options, std::int64_t numel)
    : wire_(options.wire), format_(format_of(options, numel)) {}

void DifferenceWire::encode(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& message) const {
  if (wire_ == OrderWire::Int8) {
    ops::encode_difference(first, second, message);
  } else if (second.defined()) {
    at::Tensor out = message;
    at::sub_out(out, first, second);
  } else {
    message.copy_(first);
  }
}

at::Tensor DifferenceWire::decode(const at::Tensor& items) const {
  if (wire_ != OrderWire::Int8) {
    return items;
  }
  const at::Tensor out = at::empty(
      {items.numel() / ops::kRecordBytes * ops::kRecordNumbers}, items.options().dtype(at::kFloat));
  ops::decode_differences(items, out);
  return out;
}

std::int64_t difference_bytes(
    const OrderOptions& options, std::int64_t numel, std::int64_t pairs, int workers, int worker) {
  if (workers == 1) {
    return 0;
  }
  const DifferenceWire wire(options, numel);
  const DifferenceWire::Format& format = wire.format();
  const std::int64_t item_bytes =
      format.elements * static_cast<std::int64_t>(c10::elementSize(format.type));
  std::int64_t bytes = comm::all_to_all_bytes(
      pairs * format.items, pairs * wire.share(workers, worker).size(), item_bytes);
  for (std::int64_t rows = pairs * workers; rows > 0; rows -= kProductRows) {
    const std::int64_t n = std::min(rows, kProductRows);
    bytes += comm::all_reduce_bytes(n * (n + 1) / 2, 4, workers, worker);
  }
  return bytes;
}

}  // namespace abtrain::orders
