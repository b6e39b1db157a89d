// Rows of bench_kernels: the work of twobit, hylo, threshold and
// ternary between collectives, a step of Adagrad, and the codes of outer steps.
// The bytes moved are those of a pass that reads and writes each number once.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ops/adagrad.h"
#include "ops/magnitudes.h"
#include "ops/rows.h"
#include "ops/ternary_codes.h"
#include "ops/wire_codes.h"

namespace abtrain {

// Used in turn from call to call, so that the next set is in no cache.
struct CodeBuffers {
  at::Tensor u, estimate, wire;
};

template <class Bench>
std::vector<CodeBuffers> code_buffers(
    const Bench& bench, std::int64_t numel, const at::Tensor& wire) {
  const at::TensorOptions options(bench.device);
  std::vector<CodeBuffers> sets;
  for (int i = 0; i < bench.rotation(8 * numel); ++i) {
    sets.push_back({at::randn({numel}, options), at::empty({numel}, options), wire.clone()});
  }
  return sets;
}

template <class Bench>
void threshold_rows(const Bench& bench, std::int64_t numel) {
  constexpr int kWorkers = 4;
  ops::CodeBlocks blocks({{0, numel}});
  ops::TernaryTable table(blocks);
  const at::TensorOptions options(bench.device);
  const at::Tensor sums = at::empty({2}, options);
  const at::Tensor t = at::full({1}, 1.0f, options);
  const ops::TernaryRule rule{.cuts = ops::cuts_at(t), .keeps_rest = true};
  const std::int64_t codes = code_bytes(blocks, blocks.all(), ops::CodeForm::TwoBits);
  const auto sets = code_buffers(bench, numel, at::zeros({4 * codes}, options.dtype(at::kByte)));
  const auto row = [&](const char* what, std::int64_t bytes,
                       const std::function<void(const CodeBuffers&)>& body) {
    bench.row(what, "fp32", std::to_string(numel), bytes, [&](int i) {
      body(sets[static_cast<std::size_t>(i) % sets.size()]);
    });
  };
  row("codes, sums", 4 * numel, [&](const CodeBuffers& set) {
    ops::magnitudes(set.u, blocks, ops::Statistic::Moments, sums);
  });
  row("codes, encode", 8 * numel + codes, [&](const CodeBuffers& set) {
    ops::encode_ternary(set.u, table, t, rule, ops::CodeForm::TwoBits, set.wire);
  });
  row("codes, mean of 4", 4 * numel + kWorkers * codes, [&](const CodeBuffers& set) {
    ops::average_codes(set.wire, ops::CodeWire::Codes, kWorkers, table, t, set.estimate);
  });
  const ops::CodeBlocks::Range part = blocks.share(kWorkers, 0);
  const at::Tensor shard =
      at::empty({ops::sum_words(blocks, part, kWorkers)}, options.dtype(at::kInt));
  row("codes, add 4", codes + 4 * shard.numel(),
      [&](const CodeBuffers& set) { ops::pack_sums(set.wire, kWorkers, blocks, part, shard); });
  const at::Tensor all =
      at::zeros({ops::sum_words(blocks, blocks.all(), kWorkers)}, options.dtype(at::kInt));
  row("sums, decode", 4 * numel + 4 * all.numel(), [&](const CodeBuffers& set) {
    ops::average_codes(all, ops::CodeWire::Planes, kWorkers, table, t, set.estimate);
  });
  row("bytes, encode", 9 * numel, [&](const CodeBuffers& set) {
    ops::encode_ternary(set.u, table, t, rule, ops::CodeForm::Bytes, set.wire);
  });
  row("bytes, decode", 5 * numel, [&](const CodeBuffers& set) {
    ops::average_codes(set.wire, ops::CodeWire::Bytes, kWorkers, table, t, set.estimate);
  });
}

// Sends a quarter of the kernels of a 3x3 convolution with 256 channels.
template <class Bench>
void kernel_rows(const Bench& bench, std::int64_t numel) {
  constexpr std::int64_t kLength = 256 * 9;
  const std::int64_t rows = numel / kLength;
  ops::RowTable table({{0, rows, kLength, rows / 4}});
  const at::TensorOptions options(bench.device);
  const at::Tensor norms = at::empty({rows}, options);
  const at::Tensor chosen = at::empty({table.chosen()}, options.dtype(at::kInt));
  const auto sets =
      code_buffers(bench, numel, at::zeros({table.values()}, options.dtype(at::kHalf)));
  const auto row = [&](const char* what, std::int64_t bytes,
                       const std::function<void(const CodeBuffers&)>& body) {
    bench.row(what, "fp32", formatted("{} x {}", rows, kLength), bytes, [&](int i) {
      body(sets[static_cast<std::size_t>(i) % sets.size()]);
    });
  };
  row("kernels, norms", 4 * numel,
      [&](const CodeBuffers& set) { ops::row_norms(set.u, table, norms); });
  row("kernels, choose", 4 * rows,
      [&](const CodeBuffers&) { ops::choose_rows(norms, table, chosen); });
  row("kernels, send", 10 * table.values(),
      [&](const CodeBuffers& set) { ops::send_rows(set.u, table, chosen, 1, set.wire); });
  row("kernels, add", 10 * table.values(),
      [&](const CodeBuffers& set) { ops::add_rows(set.wire, table, chosen, set.estimate); });
}

template <class Bench>
void level_rows(const Bench& bench, std::int64_t numel) {
  constexpr int kWorkers = 4;
  ops::CodeBlocks blocks({{0, numel}});
  ops::TernaryTable table(blocks, /*packed=*/true);
  const at::TensorOptions options(bench.device);
  const at::Tensor sums = at::empty({2}, options);
  const at::Tensor one = at::full({1}, 1.0f, options);
  const at::Tensor zero = at::zeros({1}, options);
  const std::int64_t codes = ops::code_bytes(numel, ops::CodeForm::TwoBits);
  const auto sets = code_buffers(
      bench, numel, at::zeros({kWorkers * ops::record_bytes(1, numel)}, options.dtype(at::kByte)));
  const auto row = [&](const char* what, std::int64_t bytes,
                       const std::function<void(const CodeBuffers&)>& body) {
    bench.row(what, "fp32", std::to_string(numel), bytes, [&](int i) {
      body(sets[static_cast<std::size_t>(i) % sets.size()]);
    });
  };
  row("levels, sum above", 4 * numel, [&](const CodeBuffers& set) {
    ops::magnitudes(set.u, blocks, ops::Statistic::Above, sums, one);
  });
  row("levels, largest", 4 * numel, [&](const CodeBuffers& set) {
    ops::magnitudes(set.u, blocks, ops::Statistic::Largest, sums);
  });
  const auto encode = [&](const CodeBuffers& set, const ops::TernaryRule& rule) {
    ops::encode_ternary(set.u, table, zero, rule, ops::CodeForm::TwoBits, set.wire);
  };
  row("levels, above", 4 * numel + codes,
      [&](const CodeBuffers& set) { encode(set, {.cuts = one}); });
  row("levels, above, rest", 8 * numel + codes,
      [&](const CodeBuffers& set) { encode(set, {.cuts = one, .keeps_rest = true}); });
  row("levels, chance", 4 * numel + codes, [&](const CodeBuffers& set) {
    ops::encode_ternary(set.u, table, one, {}, ops::CodeForm::TwoBits, set.wire);
  });
  row("levels, mean of 4", 4 * numel + kWorkers * codes, [&](const CodeBuffers& set) {
    ops::average_records(set.wire, kWorkers, table, set.estimate);
  });
  const at::Tensor s = at::zeros({numel}, options);
  row("adagrad step", 20 * numel, [&](const CodeBuffers& set) {
    ops::adagrad_step({set.estimate, set.u, s, {}, {}}, blocks, one, one, one, {}, 1e-3);
  });
}

// Encodes and adds the values back, so that u stays what it is.
template <class Bench>
void wire_rows(const Bench& bench, std::int64_t numel) {
  const at::TensorOptions options(bench.device);
  for (const auto& [name, code] :
       {std::pair("int8", ops::WireCode::Int8), std::pair("int4", ops::WireCode::Int4),
        std::pair("int2", ops::WireCode::Int2), std::pair("sparse", ops::WireCode::Sparse)}) {
    const ops::WireFormat format{code};
    const std::int64_t bytes = ops::wire_bytes(format, numel);
    const auto sets = code_buffers(bench, numel, at::zeros({bytes}, options.dtype(at::kByte)));
    const std::int64_t passes = code == ops::WireCode::Sparse ? 1 : 4;
    bench.row(
        "wire, and back", name, std::to_string(numel), 4 * passes * numel + 2 * bytes, [&](int i) {
          const auto& set = sets[static_cast<std::size_t>(i) % sets.size()];
          ops::encode_wire(set.u, format, set.wire);
          ops::decode_wire(set.wire, format, 1, true, set.u);
        });
  }
}

template <class Bench>
void code_rows(const Bench& bench, std::int64_t numel) {
  threshold_rows(bench, numel);
  kernel_rows(bench, numel);
  level_rows(bench, numel);
  wire_rows(bench, numel);
}

}  // namespace abtrain
