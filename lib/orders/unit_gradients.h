// Per-example gradients, each held in memory as a whole.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

#include "nn/example_gradients.h"

namespace abtrain::orders {

// Holds the gradients as the rows of a matrix.
class BuiltGradients : public nn::UnitGradients {
 public:
  explicit BuiltGradients(at::Tensor rows) : rows_(std::move(rows)) {}
  std::int64_t size() const override {
    return rows_.size(0);
  }
  at::Tensor products() const override;
  at::Tensor products(const at::Tensor& vector) const override;
  void add(const at::Tensor& vector, const at::Tensor& coefficients) const override;
  void differences(const at::Tensor& rows) const override;

 private:
  at::Tensor rows_;
};

}  // namespace abtrain::orders
