// Turns the codes of ops/ternary_codes.h, with levels that all members know, into the mean over a
// group.
//
// - int8: one-byte codes, summed by an all-reduce; at most 127 members.
// - a2a: two-bit codes go to the member that serves their blocks, which sends
//   their sums to all members in ceil(log2(2 n + 1)) bits each.
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

// The blocks of these tensors, which lie at their offsets in the buffer.
ops::CodeBlocks blocks_of(const std::vector<Slot>& slots);

// Adds the conflict of `transport: int8` with a larger group; `others` are the
// transports that suit it.
void check_int8(
    std::optional<CodeTransport> transport, const std::string& section, std::int64_t members,
    const char* others, Conflicts& out);
// The transport with two-bit codes that sends less, all-to-all or gather.
CodeTransport cheaper_transport(int members);

// Writes to `estimate` the mean over the group of what the members' codes stand
// for, and leaves in `u` what this member did not send. An element is sent if its
// magnitude is at least its tensor's threshold, its level. `u` and `estimate`: flat
// fp32 buffers that `table` refers to. `thresholds`: fp32, one per tensor of
// `table`, which must not move until the Rounds are done.
Rounds average_by_codes(
    ops::TernaryTable& table, at::Tensor u, at::Tensor thresholds, at::Tensor estimate,
    comm::Communicator& group, comm::Purpose purpose, CodeTransport transport);
Volume code_sums_volume(const ops::CodeBlocks& blocks, CodeTransport transport, Member member);

}  // namespace abtrain::compress
