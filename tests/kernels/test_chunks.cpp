#include "ops/chunks.h"

#include "base/text.h"
#include "kernel_test.h"
#include "ops/chunk_cases.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(Chunks) : public KernelTest {};

TEST_F(ABT_KERNEL_SUITE(Chunks), AddWithNormsAsTheCpuToTheBit) {
  for (const auto& [numel, chunk] : kChunkSizes) {
    for (const bool add : {true, false}) {
      // Where u and g are not both aligned, packets cannot be used.
      for (const auto& [u_begin, g_begin] : {std::pair{0, 0}, {1, 0}, {1, 1}}) {
        SCOPED_TRACE(formatted("{} in {} from {}, {}", numel, chunk, u_begin, g_begin));
        expect_same([&](const Form& form) {
          const at::Tensor u = form.of(randn(numel + 1, 1));
          const at::Tensor g = form.of(randn(numel + 1, 2)).narrow(0, g_begin, numel);
          const std::int64_t count = chunk_count(numel, chunk);
          const at::Tensor norms = form.of(at::full({count + 1}, 7.0f));
          norms.narrow(0, 0, count).copy_(form.blank({count}));
          add_with_norms(u.narrow(0, u_begin, numel), g, add, chunk, norms.narrow(0, 0, count));
          EXPECT_EQ(norms[count].item<float>(), 7.0f);
          return std::vector{u, norms};
        });
      }
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(Chunks), TakeAndPutAsTheCpuToTheBit) {
  for (const auto& [numel, chunk] : kChunkSizes) {
    for (const std::int64_t begin : {0, 1, 4}) {
      SCOPED_TRACE(formatted("{} in {} from {}", numel, chunk, begin));
      expect_same([&](const Form& form) {
        const at::Tensor u = form.of(randn(begin + numel, 3));
        const at::Tensor cut = u.narrow(0, begin, numel);
        const at::Tensor indices = form.of(some_chunks(chunk_count(numel, chunk)));
        const at::Tensor wire = form.blank({indices.numel() * chunk}, at::kHalf);
        take_chunks(cut, indices, chunk, 3, wire);
        const at::Tensor rest = u.clone();
        put_chunks(wire, indices, chunk, cut, Put::Add);
        const at::Tensor sum = u.clone();
        put_chunks(wire, indices, chunk, cut, Put::Set);
        return std::vector{rest, wire, sum, u};
      });
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
