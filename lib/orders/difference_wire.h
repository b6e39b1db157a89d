// The form in which the workers of `order: cd-grab` send gradient differences: fp32, or 8-bit codes
// (ops/difference_codes.h).
//
// A message is a row of items: fp32 numbers or records of codes. Of every message, worker i of n
// gets the items floor(items i / n) .. floor(items (i + 1) / n) - 1.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "orders/order_options.h"

namespace abtrain::orders {

class DifferenceWire {
 public:
  struct Format {
    at::ScalarType type = at::kFloat;  // of a message's elements
    std::int64_t items = 0;
    std::int64_t elements = 1;  // per item
    std::int64_t numbers = 1;   // represented by one item; the vector's last item may have fewer
    // Whether the first gradient of a pair is encoded while it waits for the second, which moves
    // less memory (ops::encode_difference_of_kept).
    bool keeps_messages = false;
  };
  struct ItemRange {
    std::int64_t begin = 0;  // first item
    std::int64_t end = 0;    // past the last item
    std::int64_t size() const {
      return end - begin;
    }
  };

  // For vectors of `numel` numbers.
  DifferenceWire(const OrderOptions& options, std::int64_t numel);

  const Format& format() const {
    return format_;
  }
  // Elements per message.
  std::int64_t elements() const {
    return format_.items * format_.elements;
  }
  ItemRange share(int workers, int worker) const {
    return {format_.items * worker / workers, format_.items * (worker + 1) / workers};
  }

  // Writes the message of first - second (both flat fp32); if `second` is undefined, the message of
  // `first`.
  void encode(const at::Tensor& first, const at::Tensor& second, const at::Tensor& message) const;
  // Decodes any number of items to flat fp32, one item after another.
  at::Tensor decode(const at::Tensor& items) const;

 private:
  OrderWire wire_;
  Format format_;
};

// Bytes that worker `worker` of `workers` sends when each has `pairs` differences of `numel`
// numbers: its messages except the share that it keeps, and the inner products.
std::int64_t difference_bytes(
    const OrderOptions& options, std::int64_t numel, std::int64_t pairs, int workers, int worker);

}  // namespace abtrain::orders
