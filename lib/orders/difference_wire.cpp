#include "orders/difference_wire.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sub.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "comm/traffic.h"
#include "ops/count_sketch.h"
#include "ops/difference_codes.h"
#include "orders/coordination.h"

namespace abtrain::orders {

namespace {

class Exact : public DifferenceWire {
 public:
  explicit Exact(std::int64_t numel) : DifferenceWire({at::kFloat, numel}) {}
  void encode(
      const at::Tensor& first, const at::Tensor& second, const at::Tensor& message) const override {
    if (second.defined()) {
      at::Tensor out = message;
      at::sub_out(out, first, second);
    } else {
      message.copy_(first);
    }
  }
};

class Codes : public DifferenceWire {
 public:
  explicit Codes(std::int64_t numel)
      : DifferenceWire(
            {.type = at::kByte,
             .items = ops::records_of(numel),
             .elements = ops::kRecordBytes,
             .numbers = ops::kRecordNumbers,
             .keeps_messages = true}) {}
  void encode(
      const at::Tensor& first, const at::Tensor& second, const at::Tensor& message) const override {
    ops::encode_difference(first, second, message);
  }
  void encode_of_kept(
      const at::Tensor& kept, const at::Tensor& second, const at::Tensor& message) const override {
    ops::encode_difference_of_kept(kept, second, message);
  }
  at::Tensor decode(const at::Tensor& items) const override {
    const at::Tensor out = at::empty(
        {items.numel() / ops::kRecordBytes * ops::kRecordNumbers},
        items.options().dtype(at::kFloat));
    ops::decode_differences(items, out);
    return out;
  }
  std::unique_ptr<DifferenceRows> rows(
      const at::Tensor& items, std::int64_t workers, std::int64_t pairs) const override {
    if (items.is_cpu()) {
      return std::make_unique<CodeRows>(items, workers, pairs);
    }
    return DifferenceWire::rows(items, workers, pairs);
  }
};

class Sketch : public DifferenceWire {
 public:
  Sketch(std::int64_t buckets, std::uint64_t seed)
      : DifferenceWire({.items = buckets, .takes_parts = false}),
        seed_(Random(seed, RandomPurpose::Orders).next()) {}
  void encode(
      const at::Tensor& first, const at::Tensor& second, const at::Tensor& message) const override {
    ops::count_sketch(first, second, seed_, message);
  }

 private:
  std::uint32_t seed_;
};

}  // namespace

void DifferenceWire::encode_of_kept(const at::Tensor&, const at::Tensor&, const at::Tensor&) const {
  ABT_ASSERT(false, "this wire keeps no messages");
}

std::unique_ptr<DifferenceRows> DifferenceWire::rows(
    const at::Tensor& items, std::int64_t workers, std::int64_t pairs) const {
  const at::Tensor numbers = decode(items);
  const std::int64_t width = numbers.numel() / (workers * pairs);
  return std::make_unique<FloatRows>(
      numbers.view({workers, pairs, width}).transpose(0, 1).reshape({pairs * workers, width}));
}

std::unique_ptr<DifferenceWire> make_wire(
    const OrderOptions& options, std::int64_t numel, std::uint64_t seed) {
  switch (options.wire) {
    case OrderWire::Fp32:
      return std::make_unique<Exact>(numel);
    case OrderWire::Int8:
      return std::make_unique<Codes>(numel);
    case OrderWire::Sketch:
      break;
  }
  return std::make_unique<Sketch>(options.sketch, seed);
}

std::int64_t difference_bytes(
    const OrderOptions& options, std::int64_t numel, std::int64_t pairs, int workers, int worker) {
  if (workers == 1) {
    return 0;
  }
  const auto wire = make_wire(options, numel, 0);
  const DifferenceWire::Format& format = wire->format();
  const std::int64_t item_bytes =
      format.elements * static_cast<std::int64_t>(c10::elementSize(format.type));
  std::int64_t bytes = comm::all_to_all_bytes(
      pairs * format.items, pairs * wire->share(workers, worker).size(), item_bytes);
  for (std::int64_t rows = pairs * workers; rows > 0; rows -= kProductRows) {
    const std::int64_t n = std::min(rows, kProductRows);
    bytes += comm::all_reduce_bytes(n * (n + 1) / 2, 4, workers, worker);
  }
  return bytes;
}

}  // namespace abtrain::orders
