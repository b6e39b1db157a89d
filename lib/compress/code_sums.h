// How threshold codes (ops/threshold_codes.h) become the mean over a group.
//
// - int8: codes of a byte, summed by an all-reduce; at most 127 members.
// - a2a: codes of two bits go to the member that serves their blocks, which
//   sends their sums in ceil(log2(2 n + 1)) bits to all.
// - gather: codes of two bits go to everybody.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "compress/bucket.h"
#include "compress/rounds.h"
#include "ops/threshold_codes.h"

namespace abtrain::compress {

// The blocks of these tensors, in a buffer in which they have their offsets.
ops::CodeBlocks blocks_of(const std::vector<Slot>& slots);

enum class CodeTransport { Int8, AllToAll, Gather };

// int8 | a2a | gather. Error(Config) for any other.
CodeTransport code_transport(std::string_view name);
// Of those with two bits the one that sends less.
CodeTransport cheaper_transport(int members);

struct CodeSums {
  ops::CodeBlocks* blocks = nullptr;  // stay where they are
  at::Tensor u;                       // becomes what was not sent
  at::Tensor thresholds;              // one a tensor of blocks
  at::Tensor estimate;                // of the blocks' numbers: written
  comm::Communicator* group = nullptr;
  comm::Purpose purpose = comm::Purpose::Gradient;
  CodeTransport transport = CodeTransport::Int8;
};

// Error(Config) where the group is too large for int8.
Rounds average_by_codes(CodeSums task);
std::int64_t code_sums_bytes(
    const ops::CodeBlocks& blocks,
    CodeTransport transport,
    int members,
    int rank);
std::int64_t code_sums_bits(
    const ops::CodeBlocks& blocks,
    CodeTransport transport,
    int members);

}  // namespace abtrain::compress
