#include "compress/code_sums.h"

#include <ATen/ops/empty.h>

#include "base/mapped.h"

namespace abtrain::compress {

using ops::CodeForm;

namespace {

std::int64_t bytes_of_all(const ops::CodeBlocks& blocks, CodeForm form) {
  return code_bytes(blocks, blocks.all(), form);
}

}  // namespace

ops::CodeBlocks blocks_of(const std::vector<Slot>& slots) {
  return ops::CodeBlocks(mapped(slots, [](const Slot& slot) {
    return ops::CodeBlocks::Tensor{slot.offset, slot.numel()};
  }));
}

void check_int8(
    std::optional<CodeTransport> transport, const std::string& section, std::int64_t members,
    const char* others, Conflicts& out) {
  conflict_if(
      transport == CodeTransport::Int8 && members > kernels::kMaxByteWorkers, out,
      {section + ".transport", section + ".name"},
      "int8 holds the sum of at most {} workers' codes, but a group has "
      "{}; expected {}",
      kernels::kMaxByteWorkers, members, others);
}

CodeTransport cheaper_transport(int members) {
  // Bits per element: (n - 1) * 2 against (n - 1) / n * (2 + bits per sum).
  return members * 2 <= 2 + ops::sum_bits(members) ? CodeTransport::Gather
                                                   : CodeTransport::AllToAll;
}

Rounds average_by_codes(
    ops::TernaryTable& table, at::Tensor u, at::Tensor thresholds, at::Tensor estimate,
    comm::Communicator& group, comm::Purpose purpose, CodeTransport transport) {
  const ops::CodeBlocks& blocks = table.blocks();
  const int n = group.size();
  const auto rank = static_cast<std::size_t>(group.rank());
  const at::TensorOptions bytes = u.options().dtype(at::kByte);

  const auto decode = [&](const at::Tensor& sent, ops::CodeWire wire) {
    average_codes(sent, wire, n, table, thresholds, estimate);
  };
  const CodeForm form = transport == CodeTransport::Int8 ? CodeForm::Bytes : CodeForm::TwoBits;
  const at::Tensor codes = at::empty({bytes_of_all(blocks, form)}, bytes);
  const ops::TernaryRule rule{.cuts = ops::cuts_at(thresholds), .keeps_rest = true};
  encode_ternary(u, table, thresholds, rule, form, codes);
  if (transport == CodeTransport::Int8) {
    co_yield group.all_reduce(codes, comm::ReduceOp::Sum, purpose);
    decode(codes, ops::CodeWire::Bytes);
    co_return;
  }
  if (transport == CodeTransport::Gather) {
    const at::Tensor received = at::empty({n * codes.numel()}, bytes);
    co_yield group.all_gather(received, codes, purpose);
    decode(received, ops::CodeWire::Codes);
    co_return;
  }

  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> sizes;  // words of the members' sums
  for (int i = 0; i < n; ++i) {
    const ops::CodeBlocks::Range share = blocks.share(n, i);
    counts.push_back(code_bytes(blocks, share, CodeForm::TwoBits));
    sizes.push_back(ops::sum_words(blocks, share, n));
  }
  const at::Tensor received = at::empty({n * counts[rank]}, bytes);
  co_yield group.all_to_all(received, codes, counts, purpose);
  const at::TensorOptions words = bytes.dtype(at::kInt);
  const at::Tensor own = at::empty({sizes[rank]}, words);
  pack_sums(received, n, table.blocks(), blocks.share(n, group.rank()), own);
  const at::Tensor sums = at::empty({ops::sum_words(blocks, blocks.all(), n)}, words);
  co_yield group.all_gather(sums, own, sizes, purpose);
  decode(sums, ops::CodeWire::Planes);
}

Volume code_sums_volume(const ops::CodeBlocks& blocks, CodeTransport transport, Member member) {
  if (transport == CodeTransport::Int8) {
    return member.all_reduce(bytes_of_all(blocks, CodeForm::Bytes), 1);
  }
  const std::int64_t all = bytes_of_all(blocks, CodeForm::TwoBits);
  if (transport == CodeTransport::Gather) {
    return member.all_gather(all, 1);
  }
  const int n = member.members;
  const ops::CodeBlocks::Range mine = blocks.share(n, member.rank);
  return {
      comm::all_to_all_bytes(all, code_bytes(blocks, mine, CodeForm::TwoBits), 1) +
          comm::all_gather_bytes(ops::sum_words(blocks, mine, n), 4, n),
      8 * all + 32 * ops::sum_words(blocks, blocks.all(), n)};
}

}  // namespace abtrain::compress
