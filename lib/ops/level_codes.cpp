#include "ops/level_codes.h"

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
  return CodeBlocks(tensors);
}

}  // namespace

LevelTable::LevelTable(const std::vector<std::int64_t>& numels) : blocks_(blocks_of(numels)) {
  std::int64_t block = 0;
  for (std::int64_t begin = 0; begin < numel(); begin += kernels::kBlock) {
    while (blocks_.host()[block].begin + blocks_.host()[block].count <= begin) {
      ++block;
    }
    windows_.host.push_back(
        {begin, begin / kernels::kGroup, std::min<std::int64_t>(kernels::kBlock, numel() - begin),
         block});
  }
}

void encode_above(
    const at::Tensor& u, LevelTable& table, const at::Tensor& cuts, CodeForm form,
    const at::Tensor& codes, const at::Tensor& levels) {
  const c10::Device device = u.device();
  const kernels::EncodeAbove job{
      table.windows_on(device),
      table.windows(),
      table.blocks().on(device),
      flat<float>(u, table.numel(), device, "encode_above: u"),
      flat<const float>(cuts, table.tensors(), device, "encode_above: cuts"),
      levels.defined() ? flat<const float>(levels, table.tensors(), device, "encode_above: levels")
                       : nullptr,
      form,
      flat<std::uint8_t>(codes, code_bytes(table, form), device, "encode_above: codes")};
  dispatch("encode_above", job, device, kernels::encode_above);
}

void encode_by_chance(
    const at::Tensor& u, LevelTable& table, const at::Tensor& levels, const Chance& chance,
    CodeForm form, const at::Tensor& codes) {
  const c10::Device device = u.device();
  const kernels::EncodeByChance job{
      table.windows_on(device),
      table.windows(),
      table.blocks().on(device),
      flat<const float>(u, table.numel(), device, "encode_by_chance: u"),
      flat<const float>(levels, table.tensors(), device, "encode_by_chance: levels"),
      form,
      flat<std::uint8_t>(codes, code_bytes(table, form), device, "encode_by_chance: codes"),
      kernels::random_stream(
          chance.seed, kernels::RandomPurpose::Rounding, chance.step, chance.stream)};
  dispatch("encode_by_chance", job, device, kernels::encode_by_chance);
}

void average_levels(
    const at::Tensor& in, int workers, LevelTable& table, const at::Tensor& estimate) {
  const c10::Device device = in.device();
  const std::int64_t stride = table.record_bytes();
  ABT_ASSERT(workers > 0, "average_levels: {} workers", workers);
  const kernels::AverageLevels job{
      table.windows_on(device),
      table.windows(),
      table.blocks().on(device),
      flat<const std::uint8_t>(in, workers * stride, device, "average_levels: records"),
      stride,
      4 * table.tensors(),
      workers,
      flat<float>(estimate, table.numel(), device, "average_levels: estimate")};
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
      table.windows_on(device),
      table.windows(),
      table.blocks().on(device),
      flat<const std::uint8_t>(sums, table.numel(), device, "average_byte_levels: sums"),
      workers,
      flat<const float>(levels, table.tensors(), device, "average_byte_levels: levels"),
      flat<float>(estimate, table.numel(), device, "average_byte_levels: estimate")};
  dispatch("average_byte_levels", job, device, kernels::average_byte_levels);
}

}  // namespace abtrain::ops
