#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "base/error.h"
#include "data/dataset.h"
#include "data/order.h"

namespace abtrain::data {
namespace {

at::Tensor rows(const at::Tensor& all, const at::Tensor& indices) {
  return all.defined() ? at::index_select(all, 0, indices) : at::Tensor();
}
ByteImages selected(const ByteImages& all, const at::Tensor& indices) {
  return {rows(all.pixels, indices), rows(all.labels, indices), rows(all.targets, indices)};
}
FloatImages selected(const FloatImages& all, const at::Tensor& indices) {
  return {
      all.values, rows(all.labels, indices), rows(all.targets, indices), rows(all.places, indices)};
}
ListedImages selected(const ListedImages& all, const at::Tensor& indices) {
  return {all.files, rows(all.places, indices), rows(all.labels, indices)};
}
TextWindows selected(const TextWindows& all, const at::Tensor& indices) {
  return {all.text, rows(all.places, indices)};
}
TokenRows selected(const TokenRows& all, const at::Tensor& indices) {
  return {all.tokens, all.answers, rows(all.places, indices), all.counted};
}

}  // namespace

Examples chosen(const Examples& all, const at::Tensor& indices) {
  return std::visit(
      [&](const auto& source) -> Examples { return selected(source, indices); },
      static_cast<const Examples::variant&>(all));
}

Examples hold_out(Examples& train, std::int64_t count, std::uint64_t seed) {
  const std::int64_t size = train.size();
  ABT_CHECK(
      count == 0 || (count > 0 && count < size), Config,
      "data.validation: expected 0 .. {} of the {} training examples, got {}", size - 1,
      with_commas(size), with_commas(count));
  std::vector<std::int64_t> order = permutation(size, Random(seed, RandomPurpose::Validation));
  const auto cut = order.end() - count;
  // Sorted, so that each part is in file order.
  std::sort(order.begin(), cut);
  std::sort(cut, order.end());
  const auto take = [&](auto begin, auto end) {
    return chosen(train, at::tensor(std::vector<std::int64_t>(begin, end), at::kLong));
  };
  Examples held = take(cut, order.end());
  if (count > 0) {
    train = take(order.begin(), cut);
  }
  return held;
}

Examples take_validation(Dataset& set, std::int64_t count, std::uint64_t seed) {
  return count == 0 && set.validation.size() > 0 ? set.validation
                                                 : hold_out(set.train, count, seed);
}

}  // namespace abtrain::data
