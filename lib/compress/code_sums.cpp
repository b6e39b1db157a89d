#include "compress/code_sums.h"

#include <ATen/ops/empty.h>

#include "base/error.h"
#include "base/text.h"
#include "comm/traffic.h"

namespace abtrain::compress {

using ops::CodeForm;

namespace {

void check_members(CodeTransport transport, int members) {
  ABT_CHECK(
      transport != CodeTransport::Int8 || members <= kernels::kMaxByteWorkers,
      Config,
      "reducer.transport: int8 sums the codes of up to {} workers in a byte, "
      "got {}; a2a takes any number",
      kernels::kMaxByteWorkers,
      members);
}

std::int64_t bytes_of_all(const ops::CodeBlocks& blocks, CodeForm form) {
  return code_bytes(blocks, blocks.all(), form);
}

}  // namespace

ops::CodeBlocks blocks_of(const std::vector<Slot>& slots) {
  std::vector<ops::CodeBlocks::Tensor> tensors;
  for (const Slot& slot : slots) {
    tensors.push_back({slot.offset, slot.numel()});
  }
  return ops::CodeBlocks(tensors);
}

Conflicts check_int8(
    const std::string& section,
    std::int64_t members,
    const char* others) {
  if (members <= kernels::kMaxByteWorkers) {
    return {};
  }
  return {
      {{section + ".transport", section + ".name"},
       formatted(
           "int8 holds the sum of at most {} workers' codes, but a group has "
           "{}; expected {}",
           kernels::kMaxByteWorkers,
           members,
           others)}};
}

CodeTransport cheaper_transport(int members) {
  // Bits per element: (n - 1) * 2 against (n - 1) / n * (2 + bits per sum).
  return members * 2 <= 2 + ops::sum_bits(members) ? CodeTransport::Gather
                                                   : CodeTransport::AllToAll;
}

Rounds average_by_codes(CodeSums task) {
  comm::Communicator& group = *task.group;
  ops::CodeBlocks& blocks = *task.blocks;
  const int n = group.size();
  const auto rank = static_cast<std::size_t>(group.rank());
  check_members(task.transport, n);
  const at::TensorOptions bytes = task.u.options().dtype(at::kByte);

  const auto decode = [&](const at::Tensor& sent, ops::CodeWire wire) {
    average_codes(sent, wire, n, blocks, task.thresholds, task.estimate);
  };
  const CodeForm form = task.transport == CodeTransport::Int8
                            ? CodeForm::Bytes
                            : CodeForm::TwoBits;
  const at::Tensor codes = at::empty({bytes_of_all(blocks, form)}, bytes);
  encode_threshold(task.u, blocks, task.thresholds, codes, form);
  if (task.transport == CodeTransport::Int8) {
    co_yield group.all_reduce(codes, comm::ReduceOp::Sum, task.purpose);
    decode(codes, ops::CodeWire::Bytes);
    co_return;
  }
  if (task.transport == CodeTransport::Gather) {
    const at::Tensor received = at::empty({n * codes.numel()}, bytes);
    co_yield group.all_gather(received, codes, task.purpose);
    decode(received, ops::CodeWire::Codes);
    co_return;
  }

  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> sizes;  // of the sums
  for (int i = 0; i < n; ++i) {
    const ops::CodeBlocks::Range share = blocks.share(n, i);
    counts.push_back(code_bytes(blocks, share, CodeForm::TwoBits));
    sizes.push_back(ops::sum_words(blocks, share, n));
  }
  const at::Tensor received = at::empty({n * counts[rank]}, bytes);
  co_yield group.all_to_all(received, codes, counts, task.purpose);
  const at::TensorOptions words = bytes.dtype(at::kInt);
  const at::Tensor own = at::empty({sizes[rank]}, words);
  pack_sums(received, n, blocks, blocks.share(n, group.rank()), own);
  const at::Tensor sums =
      at::empty({ops::sum_words(blocks, blocks.all(), n)}, words);
  co_yield group.all_gather(sums, own, sizes, task.purpose);
  decode(sums, ops::CodeWire::Planes);
}

std::int64_t code_sums_bytes(
    const ops::CodeBlocks& blocks,
    CodeTransport transport,
    int members,
    int rank) {
  check_members(transport, members);
  switch (transport) {
    case CodeTransport::Int8:
      return comm::all_reduce_bytes(
          bytes_of_all(blocks, CodeForm::Bytes), 1, members, rank);
    case CodeTransport::Gather:
      return comm::all_gather_bytes(
          bytes_of_all(blocks, CodeForm::TwoBits), 1, members);
    case CodeTransport::AllToAll:
      break;
  }
  const ops::CodeBlocks::Range mine = blocks.share(members, rank);
  return comm::all_to_all_bytes(
             bytes_of_all(blocks, CodeForm::TwoBits),
             code_bytes(blocks, mine, CodeForm::TwoBits),
             1) +
         comm::all_gather_bytes(
             ops::sum_words(blocks, mine, members), 4, members);
}

std::int64_t code_sums_bits(
    const ops::CodeBlocks& blocks,
    CodeTransport transport,
    int members) {
  if (transport == CodeTransport::Int8) {
    return 8 * bytes_of_all(blocks, CodeForm::Bytes);
  }
  const std::int64_t codes = 8 * bytes_of_all(blocks, CodeForm::TwoBits);
  return transport == CodeTransport::Gather
             ? codes
             : codes + 32 * ops::sum_words(blocks, blocks.all(), members);
}

}  // namespace abtrain::compress
