#include "ops/rows.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

using kernels::RowTensor;

RowTable::RowTable(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    ABT_ASSERT(
        tensor.begin >= end_ && tensor.length > 0 && tensor.chosen > 0 &&
            tensor.chosen <= tensor.rows,
        "rows: expected tensors in ascending order, got {} of {} rows of {} "
        "elements from offset {} after a tensor that ends at {}",
        tensor.chosen, tensor.rows, tensor.length, tensor.begin, end_);
    tensors_.push_back(
        {tensor.begin, tensor.rows, tensor.length, tensor.chosen, rows_, chosen_, values_});
    rows_ += tensor.rows;
    chosen_ += tensor.chosen;
    values_ += tensor.chosen * tensor.length;
    end_ = tensor.begin + tensor.rows * tensor.length;
  }
}

const RowTensor* RowTable::on(c10::Device device) {
  if (device.is_cpu() || tensors_.empty()) {
    return tensors_.data();
  }
  if (!copy_.defined() || copy_.device() != device) {
    const auto bytes = tensors_.size() * sizeof(RowTensor);
    const at::Tensor copy =
        at::empty({static_cast<std::int64_t>(bytes / sizeof(std::int64_t))}, at::kLong);
    std::memcpy(copy.mutable_data_ptr(), tensors_.data(), bytes);
    copy_ = copy.to(device);
  }
  return reinterpret_cast<const RowTensor*>(copy_.const_data_ptr<std::int64_t>());
}

void row_norms(const at::Tensor& u, RowTable& table, const at::Tensor& norms) {
  const c10::Device device = u.device();
  check_flat(u, at::kFloat, table.end(), device, "row_norms: u");
  check_flat(norms, at::kFloat, table.rows(), device, "row_norms: norms");
  const kernels::RowNorms job{
      table.on(device), table.size(), table.rows(), u.const_data_ptr<float>(),
      norms.mutable_data_ptr<float>()};
  dispatch("row_norms", job, device, kernels::row_norms);
}

void choose_rows(const at::Tensor& norms, RowTable& table, const at::Tensor& chosen) {
  const c10::Device device = norms.device();
  check_flat(norms, at::kFloat, table.rows(), device, "choose_rows: norms");
  check_flat(chosen, at::kInt, table.chosen(), device, "choose_rows: chosen");
  const kernels::ChooseRows job{
      table.on(device), table.size(), table.rows(), norms.const_data_ptr<float>(),
      chosen.mutable_data_ptr<std::int32_t>()};
  dispatch("choose_rows", job, device, kernels::choose_rows);
}

void send_rows(
    const at::Tensor& u, RowTable& table, const at::Tensor& chosen, int members,
    const at::Tensor& wire) {
  const c10::Device device = u.device();
  check_flat(u, at::kFloat, table.end(), device, "send_rows: u");
  check_flat(chosen, at::kInt, table.chosen(), device, "send_rows: chosen");
  check_flat(wire, at::kHalf, table.values(), device, "send_rows: wire");
  const kernels::SendRows job{
      table.on(device),
      table.size(),
      table.chosen(),
      chosen.const_data_ptr<std::int32_t>(),
      u.mutable_data_ptr<float>(),
      wire.mutable_data_ptr(),
      members};
  dispatch("send_rows", job, device, kernels::send_rows);
}

void add_rows(
    const at::Tensor& wire, RowTable& table, const at::Tensor& chosen, const at::Tensor& estimate) {
  const c10::Device device = wire.device();
  check_flat(wire, at::kHalf, table.values(), device, "add_rows: wire");
  check_flat(chosen, at::kInt, table.chosen(), device, "add_rows: chosen");
  check_flat(estimate, at::kFloat, table.end(), device, "add_rows: estimate");
  const kernels::AddRows job{table.on(device),      table.size(),
                             table.chosen(),        chosen.const_data_ptr<std::int32_t>(),
                             wire.const_data_ptr(), estimate.mutable_data_ptr<float>()};
  dispatch("add_rows", job, device, kernels::add_rows);
}

}  // namespace abtrain::ops
