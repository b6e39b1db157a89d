// How differences of gradients travel between the workers of `order: cd-grab`:
// as they are, as 8-bit codes (ops/difference_codes.h), or as a count sketch
// (ops/count_sketch.h).
//
// A message is a row of items; what is shared out among n workers are whole
// items: worker i gets items floor(items i / n) .. floor(items (i + 1) / n) - 1
// of every message.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "data/data_options.h"
#include "orders/difference_rows.h"

namespace abtrain::orders {

class DifferenceWire {
 public:
  struct Format {
    at::ScalarType type = at::kFloat;  // of a message's elements
    std::int64_t items = 0;
    std::int64_t elements = 1;  // an item
    std::int64_t numbers = 1;   // that an item stands for
  };
  struct Share {
    std::int64_t begin = 0;  // items
    std::int64_t end = 0;
    std::int64_t size() const {
      return end - begin;
    }
  };

  explicit DifferenceWire(const Format& format) : format_(format) {}
  virtual ~DifferenceWire() = default;

  const Format& format() const {
    return format_;
  }
  // Elements of a message.
  std::int64_t elements() const {
    return format_.items * format_.elements;
  }
  Share share(int workers, int worker) const {
    return {
        format_.items * worker / workers,
        format_.items * (worker + 1) / workers};
  }

  // The message of first - second, flat fp32; second undefined: of first.
  virtual void encode(
      const at::Tensor& first,
      const at::Tensor& second,
      const at::Tensor& message) const = 0;
  // Whether whole items, but for a last one, may be encoded on their own.
  virtual bool takes_parts() const {
    return true;
  }
  // Whether the first of two gradients may wait as the message of itself, which
  // moves less memory; then that of the difference of `kept` and the second.
  virtual bool keeps_messages() const {
    return false;
  }
  virtual void encode_of_kept(
      const at::Tensor& kept,
      const at::Tensor& second,
      const at::Tensor& message) const;
  // The numbers (flat fp32) of any number of items, one after another.
  virtual at::Tensor decode(const at::Tensor& items) const = 0;
  // Of workers x pairs rows of items the rows in the order of pairs x workers.
  virtual std::unique_ptr<DifferenceRows>
  rows(const at::Tensor& items, std::int64_t workers, std::int64_t pairs) const;

 private:
  Format format_;
};

// For vectors of `numel` numbers; all workers take the same `seed` (sketch).
std::unique_ptr<DifferenceWire> make_wire(
    const data::OrderOptions& options,
    std::int64_t numel,
    std::uint64_t seed);

// Bytes that worker `worker` of `workers` sends when each has `pairs`
// differences of `numel` numbers: its messages but its own share of them, and
// the scalar products.
std::int64_t difference_bytes(
    const data::OrderOptions& options,
    std::int64_t numel,
    std::int64_t pairs,
    int workers,
    int worker);

}  // namespace abtrain::orders
