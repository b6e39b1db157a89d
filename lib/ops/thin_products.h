// Products with a thin matrix, one that has few rows, as PowerSGD and adapters need them. On the
// CPU, for fp32 and at most kThin rows, they take 0.5 to 1 times as long as MKL's, most of them 0.7
// (bench/bench_kernels.cpp); otherwise they are LibTorch's.
//   const at::Tensor z = at::empty({x.size(0), w.size(0)}, x.options());
//   ops::thin_product(x, w, z);
//   ops::add_thin_sums(z, x, w_gradient);
// Every term counts, also a product of zero and NaN, which some libraries skip. The bits do not
// depend on the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

constexpr std::int64_t kThin = 16;

// True if thin_product() and add_thin_sums() do not call LibTorch for this x (n x m) and r thin
// rows.
bool has_thin_products(const at::Tensor& x, std::int64_t r);

// out = x w^T, for x (n x m), w (r x m) and out (n x r, any strides).
void thin_product(const at::Tensor& x, const at::Tensor& w, at::Tensor out);
// out += z^T x, for z (n x r, any strides), x (n x m) and out (r x m).
void add_thin_sums(const at::Tensor& z, const at::Tensor& x, at::Tensor out);

}  // namespace abtrain::ops
