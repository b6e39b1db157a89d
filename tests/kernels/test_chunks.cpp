#include "ops/chunks.h"

#include "op_test.h"

namespace abtrain::ops {
namespace {

struct ChunkSize {
  std::int64_t numel, chunk;
};

// Full packets and not, full thread blocks and not.
constexpr ChunkSize kChunkSizes[] = {{1, 1},    {1, 64},    {7, 2},     {64, 64},     {65, 64},
                                     {1001, 7}, {5000, 1},  {9999, 33}, {20001, 128}, {12289, 4096},
                                     {50, 64},  {2240, 64}, {300, 128}, {100, 7},     {30, 1}};

// About half of the chunks, the first and the last among them.
at::Tensor some_chunks(std::int64_t count) {
  std::vector<int> taken;
  for (std::int64_t c = 0; c < count; ++c) {
    if (c == 0 || c == count - 1 || c % 5 < 2) {
      taken.push_back(static_cast<int>(c));
    }
  }
  return at::tensor(taken, at::kInt);
}

ABT_OP_TEST(Chunks, NormsAreSumsOfSquaresOfTheSum) {
  // Where u and g are not both aligned, packets cannot be used.
  for (const auto& [size, add, u_offset, g_offset] :
       cases(kChunkSizes, {true, false}, {0, 1}, {0, 1})) {
    const auto& [numel, chunk] = size;
    const at::Tensor x = randn(numel, 1), g = randn(numel, 2);
    const auto [u, norms] = forms.same([&](const Form& form) {
      const std::array out{form.of(x, u_offset), form.blank({chunk_count(numel, chunk)})};
      add_with_norms(out[0], form.of(g, g_offset), add, chunk, out[1]);
      return out;
    });
    const at::Tensor sum = add ? x.add(g) : g;
    EXPECT_TRUE(u.equal(sum));
    const at::Tensor wanted = in_rows(sum, chunk).to(at::kDouble).square().sum(1);
    EXPECT_TRUE(norms.to(at::kDouble).allclose(wanted, 1e-6, 1e-20));
  }
}

ABT_OP_TEST(Chunks, AreTakenAsHalfAndPut) {
  for (const auto& [size, members, offset] : cases(kChunkSizes, {1, 2, 3, 8}, {0, 1, 4})) {
    const auto& [numel, chunk] = size;
    const at::Tensor x = randn(numel, 3).mul_(100), y = randn(numel, 5);
    const at::Tensor indices = some_chunks(chunk_count(numel, chunk));
    const auto [rest, wire, sum, copy] = forms.same([&](const Form& form) {
      const std::array out{
          form.of(x, offset), form.blank({indices.numel() * chunk}, at::kHalf), form.of(y, offset),
          form.of(y, offset)};
      const at::Tensor taken = form.of(indices);
      take_chunks(out[0], taken, chunk, members, out[1]);
      put_chunks(out[1], taken, chunk, out[2], Put::Add);
      put_chunks(out[1], taken, chunk, out[3], Put::Set);
      return out;
    });
    const auto chunks_of = [&](const at::Tensor& u) {
      return in_rows(u, chunk).index_select(0, indices);
    };
    const auto with_chunks = [&](const at::Tensor& u, const at::Tensor& chunks) {
      const at::Tensor all = in_rows(u, chunk).index_copy(0, indices.to(at::kLong), chunks);
      return all.view(-1).narrow(0, 0, numel);
    };
    const at::Tensor sent = chunks_of(x).mul(1.0f / static_cast<float>(members)).to(at::kHalf);
    EXPECT_TRUE(wire.view({-1, chunk}).equal(sent));
    // In fp64, rounded once: what a fused multiply-add gives.
    const at::Tensor left = chunks_of(x).to(at::kDouble).sub(sent.to(at::kDouble), members);
    EXPECT_TRUE(rest.equal(with_chunks(x, left.to(at::kFloat))));
    EXPECT_TRUE(sum.equal(with_chunks(y, chunks_of(y).add(sent.to(at::kFloat)))));
    EXPECT_TRUE(copy.equal(with_chunks(y, sent.to(at::kFloat))));
  }
}

TEST(Chunks, RefuseWhatDoesNotFit) {
  const at::Tensor u = randn(100, 1);
  EXPECT_REFUSED(add_with_norms(u, randn(99, 1), true, 10, at::empty({10})));
  EXPECT_REFUSED(add_with_norms(u, u, false, 10, at::empty({9})));
  const auto take = [&](std::vector<int> indices, std::int64_t size) {
    take_chunks(u, at::tensor(indices, at::kInt), 10, 2, at::empty({size}, at::kHalf));
  };
  EXPECT_REFUSED(take({1, 2}, 10));
  EXPECT_REFUSED(take({2, 1}, 20));
  EXPECT_REFUSED(take({1, 1}, 20));
  EXPECT_REFUSED(take({10}, 10));
  EXPECT_REFUSED(take({-1}, 10));
  take({0, 9}, 20);
}

}  // namespace
}  // namespace abtrain::ops
