// Signs with a scale, and error feedback on both sides (the communication of
// 1-bit Adam, Tang et al., 2021, algorithm 1, here of gradients). See
// docs/methods/onebit.md.
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <map>

#include "base/text.h"
#include "compress/code_sums.h"
#include "compress/compressed_reducer.h"
#include "ops/sign_codes.h"

namespace abtrain::compress {

namespace {

// Turns from one mask of live elements to the next.
constexpr std::int64_t kMaskEvery = 8;

class OneBit : public CompressedReducer {
 public:
  using CompressedReducer::CompressedReducer;

 protected:
  Rounds exchange(Task task) override {
    comm::Communicator& group = *task.group;
    const int n = group.size();
    State& state = state_of(*task.packed);
    ops::CodeBlocks& blocks = state.blocks;
    const ops::CodeBlocks::Range mine = blocks.share(n, group.rank());
    const bool fresh = is_fresh(task.turn);
    // A residual left from a group of another size is of no use.
    if (!state.server.defined() || state.server.numel() != blocks.span(mine)) {
      state.server = at::zeros({blocks.span(mine)}, task.u.options());
    }
    if (!state.alive.defined()) {
      state.alive = all_alive(blocks);
    }
    state.server = state.server.to(task.u.device());  // from a checkpoint
    state.alive = state.alive.to(task.u.device());
    const at::TensorOptions words = task.u.options().dtype(at::kInt);

    std::vector<std::int64_t> counts;
    for (int i = 0; i < n; ++i) {
      counts.push_back(ops::sign_words(blocks, blocks.share(n, i), fresh));
    }
    const std::int64_t own = counts[static_cast<std::size_t>(group.rank())];
    const at::Tensor wire = at::empty({ops::sign_words(blocks, blocks.all(), fresh)}, words);
    ops::encode_signs(task.u, blocks, state.alive, wire, fresh);
    const at::Tensor received = at::empty({n * own}, words);
    co_yield group.all_to_all(received, wire, counts, task.purpose);

    if (!keeps_residual_) {
      state.server.zero_();
    }
    const at::Tensor answer = at::empty({own}, words);
    ops::serve_signs(received, n, blocks, mine, state.alive, state.server, answer, fresh);
    co_yield group.all_gather(wire, answer, counts, task.purpose);

    ops::decode_signs(wire, blocks, state.alive, task.estimate, fresh);
  }

  Volume exchanged(const Packed& packed, Member member, std::int64_t turn) const override {
    const ops::CodeBlocks blocks = blocks_of(packed.slots);
    const std::int64_t all = ops::sign_words(blocks, blocks.all(), is_fresh(turn));
    const std::int64_t own =
        ops::sign_words(blocks, blocks.share(member.members, member.rank), is_fresh(turn));
    // The payload counts the way to the servers and back.
    return member.serve(all, own, 4) + Volume{0, 32 * all};
  }

  std::int64_t period() const override {
    return kMaskEvery;
  }
  void archive_more(
      state::Archive& archive, const std::string& prefix, const Packed& packed) override {
    State& state = state_of(packed);
    archive.tensor(
        formatted("{}server.{}", prefix, packed.bucket), state.server, state::Owner::Worker);
    // A checkpoint holds fp32, so each byte becomes a number.
    at::Tensor bytes;
    if (!archive.is_loading() && state.alive.defined()) {
      bytes = state.alive.view(at::kByte).to(at::kFloat);
    }
    archive.tensor(
        formatted("{}alive.{}", prefix, packed.bucket), bytes, state::Owner::Worker,
        4 * state.blocks.groups());
    if (archive.is_loading()) {
      // No bit may be set past the end of a block.
      state.alive =
          bytes.defined()
              ? at::bitwise_and(bytes.to(at::kByte).view(at::kInt), all_alive(state.blocks))
              : at::Tensor();
    }
  }

 private:
  struct State {
    ops::CodeBlocks blocks;
    at::Tensor server;  // residual of this member's share of the group
    at::Tensor alive;   // bits of the elements that were alive on any member
  };

  static bool is_fresh(std::int64_t turn) {
    return turn % kMaskEvery == 0;
  }

  State& state_of(const Packed& packed) {
    State& state = states_[packed.bucket];
    if (state.blocks.size() == 0) {
      state.blocks = blocks_of(packed.slots);
    }
    return state;
  }

  // Until the first mask, if it comes in mid-run, any element may be alive.
  static at::Tensor all_alive(const ops::CodeBlocks& blocks) {
    const at::Tensor alive = at::full({blocks.groups()}, -1, at::kInt);
    auto* words = reinterpret_cast<std::uint32_t*>(alive.data_ptr<int>());
    for (std::int64_t b = 0; b < blocks.size(); ++b) {
      if (const auto rest = blocks.host()[b].count % kernels::kGroup) {
        words[blocks.groups_before(b + 1) - 1] = (1u << rest) - 1;
      }
    }
    return alive;
  }

  std::map<std::size_t, State> states_;  // by bucket; addresses are stable
};

}  // namespace

extern const Scheme kOneBit = {
    .name = "onebit",
    .make = make<OneBit>,
    .check = check_needs_feedback,
};

}  // namespace abtrain::compress
