#include "ops/level_codes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "base/random.h"
#include "ops/flat_check.h"
#include "ops/level_codes_backends.h"

namespace abtrain::ops {

namespace {

std::vector<CodeBlocks::Tensor> one_after_another(
    const std::vector<std::int64_t>& numels) {
  std::vector<CodeBlocks::Tensor> tensors;
  std::int64_t begin = 0;
  for (const std::int64_t numel : numels) {
    ABT_ASSERT(numel > 0, "level codes: a tensor of ", numel, " numbers");
    tensors.push_back({begin, numel});
    begin += numel;
  }
  return tensors;
}

void encode(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& levels,
    const LevelCoding& coding,
    bool bytes,
    const at::Tensor& codes) {
  const c10::Device device = u.device();
  check_flat(u, at::kFloat, table.numel(), device, "encode_levels: u");
  check_flat(
      levels, at::kFloat, table.tensors(), device, "encode_levels: levels");
  check_flat(
      codes,
      at::kByte,
      bytes ? table.numel() : kernels::packed_bytes(table.numel()),
      device,
      "encode_levels: codes");
  if (coding.cuts.defined()) {
    check_flat(
        coding.cuts, at::kFloat, table.tensors(), device, "encode_levels: cuts");
  }
  const auto key = random_key(coding.seed, RandomPurpose::Rounding);
  const kernels::EncodeLevels job{
      table.on(device),
      u.mutable_data_ptr<float>(),
      levels.const_data_ptr<float>(),
      coding.cuts.defined() ? coding.cuts.const_data_ptr<float>() : nullptr,
      coding.residual,
      bytes,
      {key[0], key[1]},
      coding.step,
      coding.stream,
      codes.mutable_data_ptr<std::uint8_t>()};
  device.is_cuda() ? encode_levels_cuda(job, device) : encode_levels_cpu(job);
}

}  // namespace

LevelTable::LevelTable(const std::vector<std::int64_t>& numels)
    : blocks_(one_after_another(numels)),
      sizes_(at::tensor(numels, at::kLong).to(at::kFloat)) {
  std::int64_t end = 0;
  for (const std::int64_t numel : numels) {
    end += numel;
    ends_.push_back(end);
  }
  for (std::int64_t begin = 0; begin < end; begin += kernels::kBlock) {
    firsts_.push_back(
        std::ranges::upper_bound(ends_, begin) - ends_.begin());
  }
}

kernels::LevelTensors LevelTable::on(c10::Device device) {
  const auto windows = static_cast<std::int64_t>(firsts_.size());
  if (device.is_cpu() || ends_.empty()) {
    return {ends_.data(), firsts_.data(), tensors(), windows};
  }
  if (!copy_.defined() || copy_.device() != device) {
    const at::Tensor both = at::empty({tensors() + windows}, at::kLong);
    auto* to = both.mutable_data_ptr<std::int64_t>();
    std::ranges::copy(firsts_, std::ranges::copy(ends_, to).out);
    copy_ = both.to(device);
  }
  const auto* const at = copy_.const_data_ptr<std::int64_t>();
  return {at, at + tensors(), tensors(), windows};
}

const at::Tensor& LevelTable::sizes_on(c10::Device device) {
  if (sizes_.device() != device) {
    sizes_ = sizes_.to(device);
  }
  return sizes_;
}

void survivors(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& cuts,
    const at::Tensor& sums) {
  const c10::Device device = u.device();
  CodeBlocks& blocks = table.blocks();
  check_flat(u, at::kFloat, table.numel(), device, "survivors: u");
  check_flat(cuts, at::kFloat, table.tensors(), device, "survivors: cuts");
  check_flat(sums, at::kFloat, 2 * table.tensors(), device, "survivors: sums");
  const at::Tensor parts = at::empty({2 * blocks.size()}, u.options());
  const kernels::Survivors job{
      blocks.on(device),
      blocks.size(),
      blocks.firsts_on(device),
      table.tensors(),
      u.const_data_ptr<float>(),
      cuts.const_data_ptr<float>(),
      parts.mutable_data_ptr<float>(),
      sums.mutable_data_ptr<float>()};
  device.is_cuda() ? survivors_cuda(job, device) : survivors_cpu(job);
}

void largest(const at::Tensor& u, LevelTable& table, const at::Tensor& most) {
  const c10::Device device = u.device();
  CodeBlocks& blocks = table.blocks();
  check_flat(u, at::kFloat, table.numel(), device, "largest: u");
  check_flat(most, at::kFloat, table.tensors(), device, "largest: most");
  const at::Tensor parts = at::empty({blocks.size()}, u.options());
  const kernels::Largest job{
      blocks.on(device),
      blocks.size(),
      blocks.firsts_on(device),
      table.tensors(),
      u.const_data_ptr<float>(),
      parts.mutable_data_ptr<float>(),
      most.mutable_data_ptr<float>()};
  device.is_cuda() ? largest_cuda(job, device) : largest_cpu(job);
}

void encode_levels(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& levels,
    const LevelCoding& coding,
    const at::Tensor& codes) {
  encode(u, table, levels, coding, false, codes);
}
void encode_byte_levels(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& levels,
    const LevelCoding& coding,
    const at::Tensor& codes) {
  encode(u, table, levels, coding, true, codes);
}

void average_levels(
    const at::Tensor& in,
    int workers,
    LevelTable& table,
    const at::Tensor& estimate) {
  const c10::Device device = in.device();
  ABT_ASSERT(workers > 0, "average_levels: ", workers, " workers");
  check_flat(
      in,
      at::kByte,
      workers * table.record_bytes(),
      device,
      "average_levels: records");
  check_flat(
      estimate, at::kFloat, table.numel(), device, "average_levels: estimate");
  const kernels::AverageLevels job{
      table.on(device),
      in.const_data_ptr<std::uint8_t>(),
      workers,
      estimate.mutable_data_ptr<float>()};
  device.is_cuda() ? average_levels_cuda(job, device) : average_levels_cpu(job);
}

void average_byte_levels(
    const at::Tensor& sums,
    int workers,
    LevelTable& table,
    const at::Tensor& levels,
    const at::Tensor& estimate) {
  const c10::Device device = sums.device();
  ABT_ASSERT(
      workers > 0 && workers <= 127,
      "average_byte_levels: a byte holds no sum of ",
      workers);
  check_flat(
      sums, at::kByte, table.numel(), device, "average_byte_levels: sums");
  check_flat(
      levels,
      at::kFloat,
      table.tensors(),
      device,
      "average_byte_levels: levels");
  check_flat(
      estimate,
      at::kFloat,
      table.numel(),
      device,
      "average_byte_levels: estimate");
  const kernels::AverageByteLevels job{
      table.on(device),
      sums.const_data_ptr<std::uint8_t>(),
      workers,
      levels.const_data_ptr<float>(),
      estimate.mutable_data_ptr<float>()};
  device.is_cuda() ? average_byte_levels_cuda(job, device)
                   : average_byte_levels_cpu(job);
}

}  // namespace abtrain::ops
