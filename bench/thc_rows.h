// Rows of bench_kernels: the work of thc and thc-saturated between collectives.
// The bytes moved are those of a pass that reads and writes each number once.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "ops/quantize.h"

namespace abtrain {

// Blocks have `size` numbers, a power of two that divides numel.
template <class Bench>
void thc_rows(const Bench& bench, std::int64_t numel, std::int64_t size) {
  const at::TensorOptions options(bench.device);
  const auto sets = static_cast<std::size_t>(bench.rotation(8 * numel));
  std::vector<at::Tensor> u, out, codes;
  for (std::size_t i = 0; i < sets; ++i) {
    u.push_back(at::randn({numel}, options));
    out.push_back(at::empty({numel}, options));
    codes.push_back(at::empty({numel}, options.dtype(at::kByte)));
  }
  const at::Tensor norms = at::empty({numel / size}, options);
  const auto k = [&](int i) { return static_cast<std::size_t>(i) % sets; };
  const std::string shape = formatted("{} x {}", numel / size, size);
  bench.row("thc, norms", "fp32", shape, 4 * numel, [&](int i) {
    ops::block_norms(u[k(i)], size, norms);
  });
  const at::Tensor ranges = norms.mul(3.3);
  const ops::Coding coding{.block = size, .rotate = true};
  // With error feedback, so u is both read and written.
  bench.row("thc, encode", "fp32>byte", shape, 9 * numel, [&](int i) {
    ops::quantize_blocks(u[k(i)], ranges, coding, true, codes[k(i)]);
  });
  bench.row("thc, decode", "byte>fp32", shape, 5 * numel, [&](int i) {
    ops::dequantize_blocks({codes[k(i)], 7.5F, 1}, ranges, coding, out[k(i)]);
  });
}

// Sums one worker's shard of all workers' four-bit codes.
template <class Bench>
void shard_row(const Bench& bench, std::int64_t numel) {
  constexpr int kWorkers = 4;
  const auto bytes = at::TensorOptions(bench.device).dtype(at::kByte);
  const std::int64_t shard = numel / 2 / kWorkers / 64 * 64;
  const auto sets = static_cast<std::size_t>(bench.rotation(kWorkers * shard));
  std::vector<at::Tensor> in;
  for (std::size_t i = 0; i < sets; ++i) {
    in.push_back(at::empty({kWorkers * shard}, bytes).fill_(0x7A));
  }
  const at::Tensor sum = at::empty({shard + kernels::kTailBytes}, bytes);
  bench.row(
      "thc, add 4", "4 bits", formatted("{} x {}", kWorkers, shard), (kWorkers + 1) * shard,
      [&](int i) { ops::sum_codes(in[static_cast<std::size_t>(i) % sets], kWorkers, sum); });
}

}  // namespace abtrain
