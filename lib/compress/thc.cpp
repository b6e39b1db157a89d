// thc: sends blocks, rotated by a Hadamard transform, in 16 levels of a range that all members
// share. The sum of codes is then a code of the sum, so codes are all-reduced as integers.
#include "compress/thc.h"

#include <ATen/ceil_div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>

#include <algorithm>

#include "base/error.h"
#include "compress/compressed_reducer.h"
#include "ops/quantize.h"

namespace abtrain::compress {

namespace {

constexpr int kLevels = 16;
// In small groups, a sum of codes (up to 15 each) fits a byte. Larger groups pack two 16-bit sums
// into an int32, whose upper half must stay below 2^15.
constexpr int kMaxInBytes = 255 / (kLevels - 1);
constexpr int kMaxMembers = 32767 / (kLevels - 1);
// The largest block of `rotation: full`: 16 MiB of fp32.
constexpr std::int64_t kLargestPiece = std::int64_t{1} << 22;

// A part of u: adjacent blocks of equal length.
struct Piece {
  std::int64_t begin = 0;    // offset in u
  std::int64_t present = 0;  // elements without the padding
  std::int64_t size = 0;     // elements with the padding
  std::int64_t block = 0;    // elements per block
};

std::int64_t padded(std::int64_t numel, std::int64_t block) {
  return at::round_up(numel, ops::unit_of(block));
}

class Thc : public CompressedReducer {
 public:
  Thc(const ReducerOptions& options, std::uint64_t seed)
      : CompressedReducer(options, seed), full_(options.rotation == Rotation::Full) {}

 protected:
  Rounds exchange(Task task) override {
    comm::Communicator& group = *task.group;
    const int n = group.size();
    ABT_ASSERT(n <= kMaxMembers, "thc: expected at most {} members, got {}", kMaxMembers, n);
    const std::vector<Piece> pieces = pieces_of(task.packed->numel);
    const at::TensorOptions options = task.u.options();
    const bool bytes = n <= kMaxInBytes;

    at::Tensor ranges = norms_of(task.u, pieces);
    co_yield group.all_reduce(ranges, comm::ReduceOp::Max, task.purpose);
    ranges = at::mul(ranges, kThcRange);

    const std::int64_t numbers = pieces.back().begin + pieces.back().size;
    const at::Tensor codes =
        at::empty({bytes ? numbers : numbers / 2}, options.dtype(bytes ? at::kByte : at::kInt));
    const ops::Coding coding{
        .rotate = options_.rotation != Rotation::None,
        .lanes = bytes ? ops::Lanes::Byte : ops::Lanes::Pair,
        .seed = seed_,
        .step = static_cast<std::uint32_t>(task.step),
        .signs = static_cast<std::uint32_t>(task.packed->bucket),
        .rounding = rounding_stream(group, task.packed->bucket),
    };
    each_piece(
        pieces, coding, ranges, codes,
        [&](const Piece& piece, const ops::Coding& own_coding, const at::Tensor& own_ranges,
            const at::Tensor& own_codes) {
          ops::quantize_blocks(
              task.u.narrow(0, piece.begin, piece.present), own_ranges, own_coding, keeps_residual_,
              own_codes);
        });
    co_yield group.all_reduce(codes, comm::ReduceOp::Sum, task.purpose);

    const auto members = static_cast<float>(n);
    each_piece(
        pieces, coding, ranges, codes,
        [&](const Piece& piece, const ops::Coding& own_coding, const at::Tensor& own_ranges,
            const at::Tensor& own_codes) {
          ops::dequantize_blocks(
              {own_codes, members * coding.offset, members}, own_ranges, own_coding,
              task.estimate.narrow(0, piece.begin, piece.present));
        });
  }

  Volume exchanged(const Packed& packed, Member member) const override {
    const std::int64_t numbers = padded(packed.numel, options_.block);
    return member.all_reduce(blocks_of(pieces_of(packed.numel)), 4) +
           (member.members <= kMaxInBytes ? member.all_reduce(numbers, 1)
                                          : member.all_reduce(numbers / 2, 4));
  }

 private:
  // Returns one piece with all blocks; for `rotation: full`, pieces of one block each, whose sizes
  // are powers of two, the largest first.
  std::vector<Piece> pieces_of(std::int64_t numel) const {
    const std::int64_t all = padded(numel, options_.block);
    if (!full_) {
      return {{0, numel, all, options_.block}};
    }
    std::vector<Piece> pieces;
    for (std::int64_t offset = 0; offset < all;) {
      const auto size = std::min(
          kLargestPiece,
          static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(all - offset))));
      // The padding is shorter than the smallest piece.
      pieces.push_back({offset, std::min(size, numel - offset), size, size});
      offset += size;
    }
    return pieces;
  }

  static std::int64_t blocks_of(const std::vector<Piece>& pieces) {
    std::int64_t blocks = 0;
    for (const Piece& piece : pieces) {
      blocks += piece.size / piece.block;
    }
    return blocks;
  }

  at::Tensor norms_of(const at::Tensor& u, const std::vector<Piece>& pieces) const {
    const std::int64_t block = options_.block;
    const at::Tensor norms = at::empty({padded(u.numel(), block) / block}, u.options());
    ops::block_norms(u, block, norms);
    if (!full_) {
      return norms;
    }
    at::Tensor joined = at::empty({blocks_of(pieces)}, u.options());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      at::Tensor norm = joined[static_cast<std::int64_t>(i)];
      at::linalg_vector_norm_out(
          norm, norms.narrow(0, pieces[i].begin / block, pieces[i].size / block));
    }
    return joined;
  }

  // Calls f with each piece, its coding, and its parts of `ranges` and `codes`.
  template <class F>
  static void each_piece(
      const std::vector<Piece>& pieces, ops::Coding coding, const at::Tensor& ranges,
      const at::Tensor& codes, const F& f) {
    const std::int64_t per_lane = coding.lanes == ops::Lanes::Byte ? 1 : 2;
    std::int64_t offset = 0;
    for (const Piece& piece : pieces) {
      const std::int64_t blocks = piece.size / piece.block;
      coding.block = piece.block;
      coding.first = piece.begin;
      f(piece, coding, ranges.narrow(0, offset, blocks),
        codes.narrow(0, piece.begin / per_lane, piece.size / per_lane));
      offset += blocks;
    }
  }

  const bool full_;
};

}  // namespace

extern const Scheme kThc = {
    .name = "thc",
    .make = make<Thc>,
    .check = check_block,
    .max_members = kMaxMembers,
};

}  // namespace abtrain::compress
