#include "ops/rows.h"

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

RowTable::RowTable(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    ABT_ASSERT(
        tensor.begin >= end_ && tensor.length > 0 && tensor.chosen > 0 &&
            tensor.chosen <= tensor.rows,
        "rows: expected tensors in ascending order, got {} of {} rows of {} "
        "elements from offset {} after a tensor that ends at {}",
        tensor.chosen, tensor.rows, tensor.length, tensor.begin, end_);
    tensors_.host.push_back(
        {tensor.begin, tensor.rows, tensor.length, tensor.chosen, rows_, chosen_, values_});
    rows_ += tensor.rows;
    chosen_ += tensor.chosen;
    values_ += tensor.chosen * tensor.length;
    end_ = tensor.begin + tensor.rows * tensor.length;
  }
}

void row_norms(const at::Tensor& u, RowTable& table, const at::Tensor& norms) {
  const c10::Device device = u.device();
  const kernels::RowNorms job{
      table.on(device), table.size(), table.rows(),
      flat<const float>(u, table.end(), device, "row_norms: u"),
      flat<float>(norms, table.rows(), device, "row_norms: norms")};
  dispatch("row_norms", job, device, kernels::row_norms);
}

void choose_rows(const at::Tensor& norms, RowTable& table, const at::Tensor& chosen) {
  const c10::Device device = norms.device();
  const kernels::ChooseRows job{
      table.on(device), table.size(), table.rows(),
      flat<const float>(norms, table.rows(), device, "choose_rows: norms"),
      flat<std::int32_t>(chosen, table.chosen(), device, "choose_rows: chosen")};
  dispatch("choose_rows", job, device, kernels::choose_rows);
}

void send_rows(
    const at::Tensor& u, RowTable& table, const at::Tensor& chosen, int members,
    const at::Tensor& wire) {
  const c10::Device device = u.device();
  const kernels::SendRows job{
      table.on(device),
      table.size(),
      table.chosen(),
      flat<const std::int32_t>(chosen, table.chosen(), device, "send_rows: chosen"),
      flat<float>(u, table.end(), device, "send_rows: u"),
      flat<c10::Half>(wire, table.values(), device, "send_rows: wire"),
      members};
  dispatch("send_rows", job, device, kernels::send_rows);
}

void add_rows(
    const at::Tensor& wire, RowTable& table, const at::Tensor& chosen, const at::Tensor& estimate) {
  const c10::Device device = wire.device();
  const kernels::AddRows job{
      table.on(device),
      table.size(),
      table.chosen(),
      flat<const std::int32_t>(chosen, table.chosen(), device, "add_rows: chosen"),
      flat<const c10::Half>(wire, table.values(), device, "add_rows: wire"),
      flat<float>(estimate, table.end(), device, "add_rows: estimate")};
  dispatch("add_rows", job, device, kernels::add_rows);
}

}  // namespace abtrain::ops
