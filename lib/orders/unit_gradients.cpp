#include "orders/unit_gradients.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/sub.h>

namespace abtrain::orders {

at::Tensor BuiltGradients::products() const {
  return at::mm(rows_, rows_.t());
}

at::Tensor BuiltGradients::products(const at::Tensor& vector) const {
  return at::mv(rows_, vector);
}

void BuiltGradients::add(const at::Tensor& vector, const at::Tensor& coefficients) const {
  vector.addmv_(rows_.t(), coefficients);
}

void BuiltGradients::differences(const at::Tensor& rows) const {
  const at::Tensor pairs = rows_.view({rows.size(0), 2, rows.size(1)});
  at::Tensor out = rows;
  at::sub_out(out, pairs.select(1, 0), pairs.select(1, 1));
}

}  // namespace abtrain::orders
