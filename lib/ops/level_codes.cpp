#include "ops/level_codes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

CodeBlocks blocks_of(const std::vector<std::int64_t>& numels) {
  std::vector<CodeBlocks::Tensor> tensors;
  std::int64_t begin = 0;
  for (const std::int64_t numel : numels) {
    ABT_ASSERT(
        numel > 0,
        "level codes: expected tensors of at least 1 element, got one of {} "
        "elements",
        numel);
    tensors.push_back({begin, numel});
    begin += numel;
  }
  return CodeBlocks(tensors, /*in_windows=*/true);
}

}  // namespace

LevelTable::LevelTable(const std::vector<std::int64_t>& numels)
    : blocks_(blocks_of(numels)), numels_(at::tensor(numels, at::kLong).to(at::kFloat)) {
  for (std::int64_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_.host()[b].begin % kernels::kBlock == 0) {
      windows_.host.push_back(b);
    }
  }
  windows_.host.push_back(blocks_.size());
}

kernels::LevelTensors LevelTable::on(c10::Device device) {
  return {
      blocks_.on(device),
      windows_.on(device),
      blocks_.firsts_on(device),
      std::ssize(windows_.host) - 1,
      tensors(),
      blocks_.size(),
      numel()};
}

const at::Tensor& LevelTable::numels_on(c10::Device device) {
  return numels_ = numels_.to(device);
}

void encode_above(
    const at::Tensor& u, LevelTable& table, const at::Tensor& cuts, CodeForm form,
    const at::Tensor& codes, const at::Tensor& sums) {
  const c10::Device device = u.device();
  const at::Tensor parts = at::empty({2 * table.blocks().size()}, u.options());
  const kernels::EncodeAbove job{
      table.on(device),
      flat<const float>(u, table.numel(), device, "encode_above: u"),
      flat<const float>(cuts, table.tensors(), device, "encode_above: cuts"),
      form,
      flat<std::uint8_t>(codes, code_bytes(table, form), device, "encode_above: codes"),
      parts.mutable_data_ptr<float>(),
      flat<float>(sums, 2 * table.tensors(), device, "encode_above: sums")};
  dispatch("encode_above", job, device, kernels::encode_above);
}

void encode_by_chance(
    const at::Tensor& u, LevelTable& table, const at::Tensor& levels, const Chance& chance,
    CodeForm form, const at::Tensor& codes) {
  const c10::Device device = u.device();
  const kernels::EncodeByChance job{
      table.on(device),
      flat<const float>(u, table.numel(), device, "encode_by_chance: u"),
      flat<const float>(levels, table.tensors(), device, "encode_by_chance: levels"),
      form,
      flat<std::uint8_t>(codes, code_bytes(table, form), device, "encode_by_chance: codes"),
      kernels::random_stream(
          chance.seed, kernels::RandomPurpose::Rounding, chance.step, chance.stream)};
  dispatch("encode_by_chance", job, device, kernels::encode_by_chance);
}

void subtract_levels(
    const at::Tensor& u, LevelTable& table, const at::Tensor& levels, CodeForm form,
    const at::Tensor& codes) {
  const c10::Device device = u.device();
  const kernels::SubtractLevels job{
      table.on(device), flat<float>(u, table.numel(), device, "subtract_levels: u"),
      flat<const float>(levels, table.tensors(), device, "subtract_levels: levels"), form,
      flat<const std::uint8_t>(codes, code_bytes(table, form), device, "subtract_levels: codes")};
  dispatch("subtract_levels", job, device, kernels::subtract_levels);
}

void average_levels(
    const at::Tensor& in, int workers, LevelTable& table, const at::Tensor& estimate) {
  const c10::Device device = in.device();
  ABT_ASSERT(workers > 0, "average_levels: {} workers", workers);
  const kernels::AverageLevels job{
      table.on(device),
      flat<const std::uint8_t>(
          in, workers * table.record_bytes(), device, "average_levels: records"),
      workers, flat<float>(estimate, table.numel(), device, "average_levels: estimate")};
  dispatch("average_levels", job, device, kernels::average_levels);
}

void average_byte_levels(
    const at::Tensor& sums, int workers, LevelTable& table, const at::Tensor& levels,
    const at::Tensor& estimate) {
  const c10::Device device = sums.device();
  ABT_ASSERT(
      workers > 0 && workers <= kernels::kMaxByteWorkers,
      "average_byte_levels: a byte holds the sum of 1 to {} workers, got {}",
      kernels::kMaxByteWorkers, workers);
  const kernels::AverageByteLevels job{
      table.on(device),
      flat<const std::uint8_t>(sums, table.numel(), device, "average_byte_levels: sums"), workers,
      flat<const float>(levels, table.tensors(), device, "average_byte_levels: levels"),
      flat<float>(estimate, table.numel(), device, "average_byte_levels: estimate")};
  dispatch("average_byte_levels", job, device, kernels::average_byte_levels);
}

}  // namespace abtrain::ops
