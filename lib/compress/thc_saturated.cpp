// thc-saturated: sends rotated blocks in 4-bit codes in both directions. Each member receives all
// members' codes of its share of the blocks, sums and clamps them once, and sends the sums back to
// all, again in 4 bits.
#include <ATen/ceil_div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>

#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "comm/traffic.h"
#include "compress/compressed_reducer.h"
#include "compress/thc.h"
#include "ops/quantize.h"

namespace abtrain::compress {

namespace {

class ThcSaturated : public CompressedReducer {
 public:
  using CompressedReducer::CompressedReducer;

 protected:
  Rounds exchange(Task task) override {
    comm::Communicator& group = *task.group;
    const int n = group.size();
    const std::int64_t block = options_.block;
    const std::int64_t units = units_of(*task.packed);
    const std::int64_t unit_bytes = ops::unit_of(block) / 2;
    const at::TensorOptions options = task.u.options();
    const at::TensorOptions bytes = options.dtype(at::kByte);

    at::Tensor& scale = scales_[task.packed->bucket];
    if (!scale.defined()) {
      // A sum of n independent blocks is sqrt(n) times as large as one block, so the scale is 1.25
      // for 4 members, 2.5 for 16.
      scale = at::full({1}, 0.625 * std::sqrt(static_cast<double>(n)), options);
    }
    scale = scale.to(options.device());  // a scale from a checkpoint is on the CPU
    at::Tensor ranges = at::empty({blocks_of(*task.packed)}, options);
    ops::block_norms(task.u, block, ranges);
    co_yield group.all_reduce(ranges, comm::ReduceOp::Max, task.purpose);
    ranges = at::mul(ranges, at::mul(scale, kThcRange));

    const at::Tensor codes = at::empty({units * unit_bytes}, bytes);
    const ops::Coding coding{
        .block = block,
        .lanes = ops::Lanes::Nibble,
        .limit = 7,
        .offset = 8,
        .seed = seed_,
        .step = static_cast<std::uint32_t>(task.step),
        .signs = static_cast<std::uint32_t>(task.packed->bucket),
        .rounding = rounding_stream(group, task.packed->bucket),
    };
    ops::quantize_blocks(task.u, ranges, coding, keeps_residual_, codes);

    std::vector<std::int64_t> counts;
    for (int i = 0; i < n; ++i) {
      counts.push_back(comm::chunk_size(units, n, i) * unit_bytes);
    }
    const std::int64_t own = counts[static_cast<std::size_t>(group.rank())];
    const at::Tensor shards = at::empty({n * own}, bytes);
    co_yield group.all_to_all(shards, codes, counts, task.purpose);
    const at::Tensor sum = at::empty({own + kernels::kTailBytes}, bytes);
    ops::sum_codes(shards, n, sum);

    for (std::int64_t& count : counts) {
      count += kernels::kTailBytes;
    }
    const at::Tensor sums = at::empty({units * unit_bytes + n * kernels::kTailBytes}, bytes);
    co_yield group.all_gather(sums, sum, counts, task.purpose);
    ops::dequantize_blocks(
        {sums, coding.offset, static_cast<float>(n), n}, ranges, coding, task.estimate);
    ops::update_scale(sums, units, block, n, scale);
  }

  Volume exchanged(const Packed& packed, Member member) const override {
    const std::int64_t units = units_of(packed);
    const std::int64_t unit_bytes = ops::unit_of(options_.block) / 2;
    const std::int64_t own = comm::chunk_size(units, member.members, member.rank) * unit_bytes;
    const std::int64_t tails = comm::all_gather_bytes(kernels::kTailBytes, 1, member.members);
    return member.all_reduce(blocks_of(packed), 4) + member.serve(units * unit_bytes, own, 1) +
           Volume{tails, 0};
  }

  void archive_more(
      state::Archive& archive, const std::string& prefix, const Packed& packed) override {
    archive.tensor(
        formatted("{}scale.{}", prefix, packed.bucket), scales_[packed.bucket],
        state::Owner::Worker, 1);
  }

 private:
  std::int64_t units_of(const Packed& packed) const {
    return at::ceil_div(packed.numel, ops::unit_of(options_.block));
  }
  std::int64_t blocks_of(const Packed& packed) const {
    return units_of(packed) * ops::unit_of(options_.block) / options_.block;
  }

  // The scale of the range: one value per bucket, the same on all members.
  std::unordered_map<std::size_t, at::Tensor> scales_;
};

}  // namespace

extern const Scheme kThcSaturated = {
    .name = "thc-saturated",
    .make = make<ThcSaturated>,
    .check = check_block,
    .max_members = kernels::kMaxMembers,
};

}  // namespace abtrain::compress
