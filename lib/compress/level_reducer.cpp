#include "compress/level_reducer.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "compress/code_sums.h"

namespace abtrain::compress {

namespace {

// From this group size on, an all-reduce of bytes sends less than a gather of
// two-bit codes.
constexpr int kMinInt8 = 9;

}  // namespace

void LevelReducer::check(
    const ReducerOptions& options, const std::string& section, std::int64_t members,
    Conflicts& out) {
  conflict_if(
      options.transport == CodeTransport::AllToAll, out,
      {section + ".transport", section + ".name"}, "{} takes auto, gather and int8, got a2a",
      *options.name);
  check_int8(options.transport, section, members, "auto or gather", out);
}

bool LevelReducer::gathers(int members) const {
  const bool suits_int8 = members >= kMinInt8 && members <= kernels::kMaxByteWorkers;
  return options_.transport.value_or(suits_int8 ? CodeTransport::Int8 : CodeTransport::Gather) ==
         CodeTransport::Gather;
}

void LevelReducer::encode(const Codes& out, const at::Tensor& levels) {
  write_codes(out, levels);
  if (keeps_residual_) {
    ops::subtract_levels(out.task.u, out.table, levels, out.form, out.codes);
  }
}

Rounds LevelReducer::exchange(Task task) {
  ops::LevelTable& table = tables_[task.packed->bucket];
  if (table.tensors() == 0) {
    std::vector<std::int64_t> numels(task.packed->slots.size());
    std::ranges::transform(task.packed->slots, numels.begin(), &Slot::numel);
    table = ops::LevelTable(numels);
  }
  comm::Communicator& group = *task.group;
  const int n = group.size();
  const at::TensorOptions bytes = task.u.options().dtype(at::kByte);

  if (gathers(n)) {
    const std::int64_t size = table.record_bytes();
    const std::int64_t head = 4 * table.tensors();
    const at::Tensor record = at::empty({size}, bytes);
    const at::Tensor levels = record.narrow(0, 0, head).view(at::kFloat);
    const at::Tensor rest = record.narrow(0, head, size - head);
    const Codes codes{task, table, ops::CodeForm::TwoBits, rest};
    levels.copy_(level_of(numbers_of(codes)));
    encode(codes, levels);
    const at::Tensor all = at::empty({n * size}, bytes);
    co_yield group.all_gather(all, record, task.purpose);
    ops::average_levels(all, n, table, task.estimate);
    co_return;
  }

  const at::Tensor sums = at::empty({table.numel()}, bytes);
  const Codes codes{task, table, ops::CodeForm::Bytes, sums};
  const at::Tensor numbers = numbers_of(codes);
  co_yield group.all_reduce(numbers, joined_by_, task.purpose);
  const at::Tensor levels = level_of(numbers);
  encode(codes, levels);
  co_yield group.all_reduce(sums, comm::ReduceOp::Sum, task.purpose);
  ops::average_byte_levels(sums, n, table, levels, task.estimate);
}

Volume LevelReducer::exchanged(const Packed& packed, Member member, std::int64_t /*turn*/) const {
  const auto tensors = static_cast<std::int64_t>(packed.slots.size());
  return gathers(member.members) ? member.all_gather(ops::record_bytes(tensors, packed.numel), 1)
                                 : member.all_reduce(numbers_per_tensor_ * tensors, 4) +
                                       member.all_reduce(packed.numel, 1);
}

}  // namespace abtrain::compress
