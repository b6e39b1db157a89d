// Averages the codes of ops/ternary_codes.h over a group. All members know the levels (the values
// behind the codes).
//
// - int8: one-byte codes, summed by an all-reduce; at most 127 members.
// - a2a: two-bit codes go to the member that serves their block; it sends the sums to all members
//   in ceil(log2(2 n + 1)) bits each.
// - gather: two-bit codes go to every member.
//
// Tested with the schemes that use it, twobit and hylo.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/conflict.h"
#include "comm/communicator.h"
#include "compress/bucket.h"
#include "compress/reducer_options.h"
#include "compress/rounds.h"
#include "compress/volume.h"
#include "ops/ternary_codes.h"

namespace abtrain::compress {

// The table of blocks (ops/code_blocks.h) of the slots' tensors.
ops::CodeBlocks blocks_of(const std::vector<Slot>& slots);

// Adds a conflict if `transport` is int8 and the group is too large for it. `others`: the
// transports to use instead, for the message.
void check_int8(
    std::optional<CodeTransport> transport, const std::string& section, std::int64_t members,
    const char* others, Conflicts& out);
// The two-bit transport that sends less: a2a or gather.
CodeTransport cheaper_transport(int members);

// Writes the mean of the members' decoded values to `estimate`, and leaves in `u` the part that
// this member did not send. An element whose magnitude reaches its tensor's threshold is sent as
// plus or minus the threshold, any other as 0. `u` and `estimate`: flat fp32 buffers that `table`
// refers to. `thresholds`: fp32, one per tensor of `table`. The object `table` must not move until
// the Rounds are done.
Rounds average_by_codes(
    ops::TernaryTable& table, at::Tensor u, at::Tensor thresholds, at::Tensor estimate,
    comm::Communicator& group, comm::Purpose purpose, CodeTransport transport);
// The volume of average_by_codes().
Volume code_sums_volume(const ops::CodeBlocks& blocks, CodeTransport transport, Member member);

}  // namespace abtrain::compress
