// Makes batches of rows of tokens, and counts the labels that are not ignored.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "data/arrays/array_set.h"

namespace abtrain::data {

namespace {

// Returns the number of labels in each row that are not kIgnoredLabel; undefined if all count.
at::Tensor counted_in_rows(const at::Tensor& labels) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;  // labels converted at a time
  std::vector<at::Tensor> counts;
  for (const at::Tensor& rows : labels.split(std::max<std::int64_t>(1, kPiece / labels.size(1)))) {
    counts.push_back(rows.to(at::kLong).ne(kIgnoredLabel).sum(1));
  }
  const at::Tensor all = at::cat(counts);
  return all.eq(labels.size(1)).all().item<bool>() ? at::Tensor() : all;
}

}  // namespace

TokenRows token_rows(const at::Tensor& tokens, const at::Tensor& answers) {
  TokenRows rows{tokens, answers, at::arange(tokens.size(0), at::kLong)};
  if (answers.dim() == 2 && !answers.is_floating_point()) {
    rows.counted = counted_in_rows(answers);
  }
  return rows;
}

Batch token_batch(const TokenRows& rows, std::span<const std::int64_t> indices) {
  const auto* places = rows.places.const_data_ptr<std::int64_t>();
  const auto taken = [&](const at::Tensor& all, at::ScalarType type) {
    std::vector<std::int64_t> sizes = all.sizes().vec();
    sizes[0] = std::ssize(indices);
    at::Tensor out = at::empty(sizes, type);
    for (std::int64_t i = 0; i < sizes[0]; ++i) {
      out[i].copy_(all[places[indices[static_cast<std::size_t>(i)]]]);
    }
    return out;
  };
  const bool numbers = rows.answers.is_floating_point();
  Batch batch{taken(rows.tokens, at::kLong), taken(rows.answers, numbers ? at::kFloat : at::kLong)};
  if (numbers && batch.labels.dim() == 1) {
    batch.labels = batch.labels.unsqueeze(1);
  }
  return batch;
}

}  // namespace abtrain::data
