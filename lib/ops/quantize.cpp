#include "ops/quantize.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.h"
#include "device/tensor_text.h"
#include "kernels/blocks/hadamard.h"
#include "ops/quantize_job.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

// GPU kernels read and write 16 bytes at a time.
void check_alignment(const at::Tensor& codes) {
  ABT_ASSERT(
      !takes_kernels(codes.device()) ||
          reinterpret_cast<std::uintptr_t>(codes.const_data_ptr()) % 16 == 0,
      "quantize: expected codes aligned to 16 bytes on CUDA");
}

bool is_flat(const at::Tensor& t, at::ScalarType type, const at::Tensor& like) {
  return t.defined() && t.dim() == 1 && t.is_contiguous() && t.scalar_type() == type &&
         t.device() == like.device();
}

std::int64_t units_of(std::int64_t numel, std::int64_t block) {
  const std::int64_t unit = unit_of(block);
  return (numel + unit - 1) / unit;
}

void check(
    const char* op, const at::Tensor& numbers, const at::Tensor& ranges, const Coding& c,
    const at::Tensor& codes, std::int64_t tails) {
  const std::int64_t units = units_of(numbers.numel(), c.block);
  const std::int64_t all = units * unit_of(c.block);
  const bool pairs = c.lanes == Lanes::Pair;
  const std::int64_t lanes = c.lanes == Lanes::Byte ? all : all / 2;
  ABT_ASSERT(
      is_flat(numbers, at::kFloat, numbers) && is_flat(ranges, at::kFloat, numbers) &&
          ranges.numel() == all / c.block &&
          is_flat(codes, pairs ? at::kInt : at::kByte, numbers) && codes.numel() == lanes + tails,
      "{}: {} {} in blocks of {} need {} ranges and {} lanes of codes, got {} "
      "and {} {}",
      op, numbers.scalar_type(), numbers.sizes(), c.block, all / c.block, lanes + tails,
      ranges.sizes(), codes.scalar_type(), codes.sizes());
  ABT_ASSERT(
      c.limit > 0 && c.offset >= c.limit && c.offset + c.limit <= 15,
      "{}: codes within {} +- {} do not fit 0 .. 15", op, c.offset, c.limit);
  ABT_ASSERT(
      c.first >= 0 && c.first % kernels::kUnit == 0,
      "{}: expected a first number at a multiple of {}, got {}", op, kernels::kUnit, c.first);
  check_alignment(codes);
}

// A GPU needs scratch for the rotated elements if a block is too large for one thread block. The
// scratch may be freed as soon as the kernels are queued, since the allocator reuses it on this
// stream only.
template <class Job>
void do_coding(
    const char* op, Job job, const at::Tensor& numbers, int (*on_gpu)(const Job&, void* stream)) {
  at::Tensor scratch;
  if (takes_kernels(numbers.device()) && job.coding.log_size > kernels::kTileLog) {
    scratch = at::empty({job.coding.blocks << job.coding.log_size}, numbers.options());
    job.scratch = scratch.mutable_data_ptr<float>();
  }
  dispatch(op, job, numbers.device(), on_gpu);
}

}  // namespace

std::int64_t unit_of(std::int64_t block) {
  return kernels::unit_of(log_of(block));
}

void block_norms(const at::Tensor& u, std::int64_t block, const at::Tensor& norms) {
  const int log_size = log_of(block);
  const std::int64_t all = units_of(u.numel(), block) * unit_of(block);
  ABT_ASSERT(
      is_flat(u, at::kFloat, u) && is_flat(norms, at::kFloat, u) && norms.numel() == all / block,
      "block_norms: expected {} norms of {} in blocks of {}, got {}", all / block, u.sizes(), block,
      norms.sizes());
  const int tiles_log = std::max(0, log_size - kernels::kTileLog);
  const at::Tensor tiles = at::empty({tiles_log > 0 ? norms.numel() << tiles_log : 0}, u.options());
  const kernels::BlockNorms job{
      .x = u.const_data_ptr<float>(),
      .numel = u.numel(),
      .blocks = norms.numel(),
      .log_size = log_size,
      .norms = norms.mutable_data_ptr<float>(),
      .tiles = tiles.mutable_data_ptr<float>(),
  };
  dispatch("block_norms", job, u.device(), kernels::block_norms);
}

void quantize_blocks(
    const at::Tensor& u, const at::Tensor& ranges, const Coding& coding, bool residual,
    const at::Tensor& codes) {
  check("quantize_blocks", u, ranges, coding, codes, 0);
  do_coding(
      "quantize_blocks", quantize_job(u, ranges, coding, residual, codes), u,
      kernels::quantize_blocks);
}

void dequantize_blocks(
    const Sums& sums, const at::Tensor& ranges, const Coding& coding, const at::Tensor& out) {
  ABT_ASSERT(
      sums.shards == 1 || (sums.shards > 1 && coding.lanes == Lanes::Nibble),
      "dequantize_blocks: {} shards", sums.shards);
  check(
      "dequantize_blocks", out, ranges, coding, sums.codes,
      sums.shards > 1 ? sums.shards * kernels::kTailBytes : 0);
  do_coding(
      "dequantize_blocks", dequantize_job(sums, ranges, coding, out), out,
      kernels::dequantize_blocks);
}

void sum_codes(const at::Tensor& in, int members, const at::Tensor& out) {
  const std::int64_t bytes = out.numel() - kernels::kTailBytes;
  ABT_ASSERT(
      members >= 1 && members <= kernels::kMaxMembers && is_flat(in, at::kByte, in) &&
          is_flat(out, at::kByte, in) && bytes >= 0 && bytes % 64 == 0 &&
          in.numel() == members * bytes,
      "sum_codes: {} shards in {} do not make one of {}", members, in.sizes(), out.sizes());
  check_alignment(in);
  check_alignment(out);
  const at::Tensor partial = at::empty({kernels::kPartials}, in.options().dtype(at::kInt));
  const kernels::SumCodes job{
      .in = in.const_data_ptr<std::uint8_t>(),
      .out = out.mutable_data_ptr<std::uint8_t>(),
      .bytes = bytes,
      .members = members,
      .partial = static_cast<std::uint32_t*>(partial.mutable_data_ptr()),
  };
  dispatch("sum_codes", job, in.device(), kernels::sum_codes);
}

void update_scale(
    const at::Tensor& codes, std::int64_t units, std::int64_t block, int shards,
    const at::Tensor& scale) {
  const std::int64_t unit_bytes = unit_of(block) / 2;
  ABT_ASSERT(
      shards >= 1 && is_flat(codes, at::kByte, codes) &&
          codes.numel() == units * unit_bytes + shards * kernels::kTailBytes &&
          is_flat(scale, at::kFloat, codes) && scale.numel() == 1,
      "update_scale: {} shards of {} units are not {}", shards, units, codes.sizes());
  check_alignment(codes);
  const kernels::UpdateScale job{
      .codes = codes.const_data_ptr<std::uint8_t>(),
      .units = units,
      .unit_bytes = unit_bytes,
      .shards = shards,
      .scale = scale.mutable_data_ptr<float>(),
  };
  dispatch("update_scale", job, codes.device(), kernels::update_scale);
}

}  // namespace abtrain::ops
