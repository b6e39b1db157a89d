// The per-example gradients of a batch, as units of an order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

#include "nn/example_gradients.h"

namespace abtrain::orders {

// Vectors are flat fp32, laid out like the block of trained parameters.
class UnitGradients {
 public:
  virtual ~UnitGradients() = default;
  virtual std::int64_t size() const = 0;
  // All <g_i, g_j>, size x size.
  virtual at::Tensor products() const = 0;
  // All <vector, g_i>.
  virtual at::Tensor products(const at::Tensor& vector) const = 0;
  // vector += sum_i coefficients_i g_i.
  virtual void add(const at::Tensor& vector, const at::Tensor& coefficients)
      const = 0;
  // Row k of `rows` (size/2 x numbers) becomes g_{2k} - g_{2k+1}.
  virtual void differences(const at::Tensor& rows) const = 0;
};

// Gradients of a recorded pass (nn/tape.h); they are never built as a whole.
class RecordedGradients : public UnitGradients {
 public:
  explicit RecordedGradients(const nn::ExampleGradients& examples)
      : examples_(examples) {}
  std::int64_t size() const override {
    return examples_.examples();
  }
  at::Tensor products() const override {
    return examples_.products();
  }
  at::Tensor products(const at::Tensor& vector) const override {
    return examples_.products(vector);
  }
  void add(const at::Tensor& vector, const at::Tensor& coefficients)
      const override {
    examples_.add(vector, coefficients);
  }
  void differences(const at::Tensor& rows) const override {
    examples_.differences(rows);
  }

 private:
  const nn::ExampleGradients& examples_;
};

// Gradients that were built one by one, as rows of a matrix.
class BuiltGradients : public UnitGradients {
 public:
  explicit BuiltGradients(at::Tensor rows) : rows_(std::move(rows)) {}
  std::int64_t size() const override {
    return rows_.size(0);
  }
  at::Tensor products() const override;
  at::Tensor products(const at::Tensor& vector) const override;
  void add(const at::Tensor& vector, const at::Tensor& coefficients)
      const override;
  void differences(const at::Tensor& rows) const override;

 private:
  at::Tensor rows_;
};

}  // namespace abtrain::orders
