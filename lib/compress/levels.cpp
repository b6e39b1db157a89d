// The schemes threshold and ternary: every element is sent as -a, 0 or +a with one level a per
// tensor (the quantizers of QCMD and QRDA Adagrad, after Xu et al., arXiv 2208.05631). See
// docs/methods/adagrad.md.
//
// - threshold: an element is sent if its magnitude is above c times its tensor's mean magnitude.
//   The level is the mean magnitude of the sent elements. Deterministic and biased.
// - ternary (TernGrad: Wen et al., NeurIPS 2017): the level is the tensor's largest magnitude; an
//   element is sent with the probability that preserves the mean.
//
// Two transports:
//
// - gather: two bits per element and the levels go to every member, all tensors in one buffer; each
//   member has its own levels.
// - int8: members first agree on common levels, then all-reduce one-byte codes.
#include <ATen/ops/empty.h>

#include <map>

#include "compress/code_sums.h"
#include "compress/compressed_reducer.h"
#include "ops/magnitudes.h"

namespace abtrain::compress {

namespace {

// From this group size on, an all-reduce of bytes sends less than a gather of two-bit codes.
constexpr int kMinInt8 = 9;

// Each tensor's mean of the magnitudes above its cut, from their sum and count.
at::Tensor mean_of(const at::Tensor& sums_and_counts) {
  const at::Tensor each = sums_and_counts.view({-1, 2});
  return each.select(1, 0).div(each.select(1, 1).clamp_min(1));
}

template <bool kByChance>
class Levels : public CompressedReducer {
 public:
  using CompressedReducer::CompressedReducer;

 protected:
  Rounds exchange(Task task) override {
    ops::TernaryTable& table = tables_[task.packed->bucket];
    if (table.blocks().size() == 0) {
      table = ops::TernaryTable(blocks_of(task.packed->slots), /*packed=*/true);
    }
    const std::int64_t tensors = table.blocks().tensors();
    comm::Communicator& group = *task.group;
    const int n = group.size();
    const at::TensorOptions floats = task.u.options();
    const at::TensorOptions bytes = floats.dtype(at::kByte);

    const at::Tensor numbers = at::empty({kNumbers * tensors}, floats);
    ops::TernaryRule rule{
        .random = kernels::random_stream(
            seed_, kernels::RandomPurpose::Rounding, static_cast<std::uint32_t>(task.step),
            rounding_stream(group, task.packed->bucket)),
        .keeps_rest = keeps_residual_};
    if (!kByChance) {
      ops::magnitudes(task.u, table.blocks(), ops::Statistic::Above, numbers);
      rule.cuts = mean_of(numbers).mul_(options_.c);
    }
    ops::magnitudes(task.u, table.blocks(), kStatistic, numbers, rule.cuts);

    if (gathers(n)) {
      const std::int64_t size = ops::record_bytes(tensors, task.packed->numel);
      const std::int64_t head = 4 * tensors;
      const at::Tensor record = at::empty({size}, bytes);
      const at::Tensor levels = record.narrow(0, 0, head).view(at::kFloat);
      levels.copy_(levels_of(numbers));
      const at::Tensor codes = record.narrow(0, head, size - head);
      ops::encode_ternary(task.u, table, levels, rule, ops::CodeForm::TwoBits, codes);
      const at::Tensor all = at::empty({n * size}, bytes);
      co_yield group.all_gather(all, record, task.purpose);
      ops::average_records(all, n, table, task.estimate);
      co_return;
    }

    co_yield group.all_reduce(
        numbers, kByChance ? comm::ReduceOp::Max : comm::ReduceOp::Sum, task.purpose);
    const at::Tensor levels = levels_of(numbers);
    const at::Tensor sums = at::empty({task.packed->numel}, bytes);
    ops::encode_ternary(task.u, table, levels, rule, ops::CodeForm::Bytes, sums);
    co_yield group.all_reduce(sums, comm::ReduceOp::Sum, task.purpose);
    ops::average_codes(sums, ops::CodeWire::Bytes, n, table, levels, task.estimate);
  }

  Volume exchanged(const Packed& packed, Member member) const override {
    const auto tensors = static_cast<std::int64_t>(packed.slots.size());
    return gathers(member.members)
               ? member.all_gather(ops::record_bytes(tensors, packed.numel), 1)
               : member.all_reduce(kNumbers * tensors, 4) + member.all_reduce(packed.numel, 1);
  }
  bool works_in_place() const override {
    return true;
  }

 private:
  // The statistic from which levels are computed.
  static constexpr auto kStatistic = kByChance ? ops::Statistic::Largest : ops::Statistic::Above;
  static constexpr std::int64_t kNumbers = kernels::values_of(kStatistic);

  static at::Tensor levels_of(const at::Tensor& numbers) {
    return kByChance ? numbers : mean_of(numbers);
  }
  bool gathers(int members) const {
    const bool suits_int8 = members >= kMinInt8 && members <= kernels::kMaxByteWorkers;
    return options_.transport.value_or(suits_int8 ? CodeTransport::Int8 : CodeTransport::Gather) ==
           CodeTransport::Gather;
  }

  std::map<std::size_t, ops::TernaryTable> tables_;  // by bucket
};

void check_levels(
    const ReducerOptions& options, const std::string& section, std::int64_t members,
    Conflicts& out) {
  conflict_if(
      options.transport == CodeTransport::AllToAll, out,
      {section + ".transport", section + ".name"}, "{} takes auto, gather and int8, got a2a",
      *options.name);
  check_int8(options.transport, section, members, "auto or gather", out);
}

void check_ternary(
    const ReducerOptions& options, const std::string& section, std::int64_t members,
    Conflicts& out) {
  conflict_if(
      has_error_feedback(options), out, {section + ".error_feedback", section + ".name"},
      "ternary's random error is larger than the values it encodes, so "
      "residuals would grow without bound; expected auto or false");
  check_levels(options, section, members, out);
}

}  // namespace

extern const Scheme kThreshold = {
    .name = "threshold",
    .make = make<Levels</*kByChance=*/false>>,
    .check = check_levels,
    .error_feedback = false,
    .min_numel = 1,
};
extern const Scheme kTernary = {
    .name = "ternary",
    .make = make<Levels</*kByChance=*/true>>,
    .check = check_ternary,
    .error_feedback = false,
    .min_numel = 1,
};

}  // namespace abtrain::compress
