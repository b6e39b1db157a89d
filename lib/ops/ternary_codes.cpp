#include "ops/ternary_codes.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/nextafter.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

void check_workers(int workers, int most) {
  ABT_ASSERT(
      workers > 0 && workers <= most, "ternary codes: expected 1 to {} workers, got {}", most,
      workers);
}

}  // namespace

TernaryTable::TernaryTable(CodeBlocks tensors, bool packed) : blocks_(std::move(tensors)) {
  std::int64_t end = 0;
  for (std::int64_t b = 0; packed && b < blocks_.size(); ++b) {
    const kernels::CodeBlock& block = blocks_.host()[b];
    ABT_ASSERT(block.begin == end, "ternary codes: a gap before element {}", block.begin);
    end += block.count;
    for (std::int64_t begin = kernels::kBlock * std::ssize(windows_.host); begin < end;
         begin += kernels::kBlock) {
      windows_.host.push_back(
          {begin, begin / kernels::kGroup,
           std::min<std::int64_t>(kernels::kBlock, blocks_.end() - begin), b});
    }
  }
}

kernels::TernaryBlocks TernaryTable::on(c10::Device device) {
  const kernels::CodeBlock* tensors = blocks_.on(device);
  return windows_.host.empty()
             ? kernels::
                   TernaryBlocks{tensors, blocks_.size(), nullptr, kernels::kGroup * blocks_.groups()}
             : kernels::TernaryBlocks{
                   windows_.on(device), std::ssize(windows_.host), tensors, blocks_.end()};
}

at::Tensor cuts_at(const at::Tensor& thresholds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return at::nextafter(thresholds, at::full_like(thresholds, -kInfinity));
}

void encode_ternary(
    const at::Tensor& u, TernaryTable& table, const at::Tensor& levels, const TernaryRule& rule,
    CodeForm form, const at::Tensor& wire) {
  const c10::Device device = u.device();
  const kernels::TernaryBlocks blocks = table.on(device);
  const std::int64_t tensors = table.blocks().tensors();
  ABT_ASSERT(
      rule.cuts.defined() || blocks.tensors != nullptr,
      "encode_ternary: chances need a packed table");
  const float* const values =
      flat<const float>(u, table.blocks().end(), device, "encode_ternary: u");
  const kernels::EncodeTernary job{
      blocks,
      values,
      rule.keeps_rest ? u.mutable_data_ptr<float>() : nullptr,
      flat<const float>(levels, tensors, device, "encode_ternary: levels"),
      flat_or_null<const float>(rule.cuts, tensors, device, "encode_ternary: cuts"),
      rule.random,
      form,
      flat<std::uint8_t>(wire, code_bytes(blocks.codes, form), device, "encode_ternary: wire")};
  dispatch("encode_ternary", job, device, kernels::encode_ternary);
}

void pack_sums(
    const at::Tensor& in, int workers, CodeBlocks& blocks, CodeBlocks::Range part,
    const at::Tensor& wire) {
  const c10::Device device = in.device();
  const std::int64_t stride = code_bytes(blocks, part, CodeForm::TwoBits);
  check_workers(workers, kMaxCodeWorkers);
  const kernels::PackSums job{
      {blocks.on(device) + part.begin, part.end - part.begin, nullptr,
       kernels::kGroup * blocks.groups(part)},
      flat<const std::uint8_t>(in, workers * stride, device, "pack_sums: codes"),
      workers,
      sum_bits(workers),
      reinterpret_cast<std::uint32_t*>(
          flat<std::int32_t>(wire, sum_words(blocks, part, workers), device, "pack_sums: wire"))};
  dispatch("pack_sums", job, device, kernels::pack_sums);
}

void average_codes(
    const at::Tensor& in, CodeWire wire, int workers, TernaryTable& table, const at::Tensor& levels,
    const at::Tensor& estimate) {
  const c10::Device device = in.device();
  const kernels::TernaryBlocks blocks = table.on(device);
  CodeBlocks& tensors = table.blocks();
  check_workers(workers, wire == CodeWire::Bytes ? kernels::kMaxByteWorkers : kMaxCodeWorkers);
  const std::int64_t numel = wire == CodeWire::Planes ? sum_words(tensors, tensors.all(), workers)
                             : wire == CodeWire::Codes
                                 ? workers * code_bytes(blocks.codes, CodeForm::TwoBits)
                                 : blocks.codes;
  check_flat(
      in, wire == CodeWire::Planes ? at::kInt : at::kByte, numel, device, "average_codes: in");
  const kernels::AverageCodes job{
      blocks,
      in.const_data_ptr(),
      wire,
      workers,
      sum_bits(workers),
      flat<const float>(levels, tensors.tensors(), device, "average_codes: levels"),
      flat<float>(estimate, tensors.end(), device, "average_codes: estimate")};
  dispatch("average_codes", job, device, kernels::average_codes);
}

void average_records(
    const at::Tensor& in, int workers, TernaryTable& table, const at::Tensor& estimate) {
  const c10::Device device = in.device();
  const kernels::TernaryBlocks blocks = table.on(device);
  const std::int64_t stride = record_bytes(table.blocks().tensors(), blocks.codes);
  ABT_ASSERT(workers > 0, "average_records: {} workers", workers);
  const kernels::AverageRecords job{
      blocks, flat<const std::uint8_t>(in, workers * stride, device, "average_records: records"),
      stride, workers,
      flat<float>(estimate, table.blocks().end(), device, "average_records: estimate")};
  dispatch("average_records", job, device, kernels::average_records);
}

}  // namespace abtrain::ops
