#include "ops/level_codes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "base/random.h"
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

// each: one value per tensor, cuts or levels.
void check_coding(
    const at::Tensor& u, const at::Tensor& each, CodeForm form, const at::Tensor& codes,
    const LevelTable& table) {
  const c10::Device device = u.device();
  check_flat(u, at::kFloat, table.numel(), device, "level codes: u");
  check_flat(each, at::kFloat, table.tensors(), device, "level codes: levels");
  check_flat(codes, at::kByte, code_bytes(table, form), device, "level codes: codes");
}

}  // namespace

LevelTable::LevelTable(const std::vector<std::int64_t>& numels)
    : blocks_(blocks_of(numels)), numels_(at::tensor(numels, at::kLong).to(at::kFloat)) {
  for (std::int64_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_.host()[b].begin % kernels::kBlock == 0) {
      windows_.push_back(b);
    }
  }
  windows_.push_back(blocks_.size());
}

kernels::LevelTensors LevelTable::on(c10::Device device) {
  const std::int64_t* windows = windows_.data();
  if (!device.is_cpu()) {
    if (!copy_.defined() || copy_.device() != device) {
      copy_ = at::tensor(windows_, at::kLong).to(device);
    }
    windows = copy_.const_data_ptr<std::int64_t>();
  }
  return {
      blocks_.on(device),
      windows,
      blocks_.firsts_on(device),
      static_cast<std::int64_t>(windows_.size()) - 1,
      tensors(),
      blocks_.size(),
      numel()};
}

const at::Tensor& LevelTable::numels_on(c10::Device device) {
  if (numels_.device() != device) {
    numels_ = numels_.to(device);
  }
  return numels_;
}

void encode_above(
    const at::Tensor& u, LevelTable& table, const at::Tensor& cuts, CodeForm form,
    const at::Tensor& codes, const at::Tensor& sums) {
  const c10::Device device = u.device();
  check_coding(u, cuts, form, codes, table);
  check_flat(sums, at::kFloat, 2 * table.tensors(), device, "encode_above: sums");
  const at::Tensor parts = at::empty({2 * table.blocks().size()}, u.options());
  const kernels::EncodeAbove job{
      table.on(device),
      u.const_data_ptr<float>(),
      cuts.const_data_ptr<float>(),
      form,
      codes.mutable_data_ptr<std::uint8_t>(),
      parts.mutable_data_ptr<float>(),
      sums.mutable_data_ptr<float>()};
  dispatch("encode_above", job, device, kernels::encode_above);
}

void encode_by_chance(
    const at::Tensor& u, LevelTable& table, const at::Tensor& levels, const Chance& chance,
    CodeForm form, const at::Tensor& codes) {
  check_coding(u, levels, form, codes, table);
  const auto key = random_key(chance.seed, RandomPurpose::Rounding);
  const kernels::EncodeByChance job{
      table.on(u.device()),
      u.const_data_ptr<float>(),
      levels.const_data_ptr<float>(),
      form,
      codes.mutable_data_ptr<std::uint8_t>(),
      {key[0], key[1]},
      chance.step,
      chance.stream};
  dispatch("encode_by_chance", job, u.device(), kernels::encode_by_chance);
}

void subtract_levels(
    const at::Tensor& u, LevelTable& table, const at::Tensor& levels, CodeForm form,
    const at::Tensor& codes) {
  check_coding(u, levels, form, codes, table);
  const kernels::SubtractLevels job{
      table.on(u.device()), u.mutable_data_ptr<float>(), levels.const_data_ptr<float>(), form,
      codes.const_data_ptr<std::uint8_t>()};
  dispatch("subtract_levels", job, u.device(), kernels::subtract_levels);
}

void average_levels(
    const at::Tensor& in, int workers, LevelTable& table, const at::Tensor& estimate) {
  const c10::Device device = in.device();
  ABT_ASSERT(workers > 0, "average_levels: {} workers", workers);
  check_flat(in, at::kByte, workers * table.record_bytes(), device, "average_levels: records");
  check_flat(estimate, at::kFloat, table.numel(), device, "average_levels: estimate");
  const kernels::AverageLevels job{
      table.on(device), in.const_data_ptr<std::uint8_t>(), workers,
      estimate.mutable_data_ptr<float>()};
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
  check_coding(estimate, levels, CodeForm::Bytes, sums, table);
  const kernels::AverageByteLevels job{
      table.on(device), sums.const_data_ptr<std::uint8_t>(), workers,
      levels.const_data_ptr<float>(), estimate.mutable_data_ptr<float>()};
  dispatch("average_byte_levels", job, device, kernels::average_byte_levels);
}

}  // namespace abtrain::ops
