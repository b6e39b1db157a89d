// Kernels on differences of gradients: codes.
#include "kernel_test.h"
#include "ops/difference_codes.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(Differences) : public KernelTest {};

TEST_F(ABT_KERNEL_SUITE(Differences), AreCodedAsByTheCpuToTheBit) {
  for (const std::int64_t numel : {1L, 256L, 257L, 600L, large(100'003, 5'003)}) {
    SCOPED_TRACE(numel);
    expect_same([&](const Form& form) {
      const at::Tensor first = form.of(randn(numel, 1));
      const at::Tensor second = form.of(randn(numel, 2));
      const at::Tensor alone = form.blank({records_of(numel) * kRecordBytes}, at::kByte);
      const at::Tensor records = form.blank(alone.sizes(), at::kByte);
      const at::Tensor more = form.blank(alone.sizes(), at::kByte);
      const at::Tensor decoded = form.blank({records_of(numel) * kRecordNumbers});
      encode_difference(first, {}, alone);
      encode_difference(first, second, records);
      encode_difference_of_kept(records, second, more);
      decode_differences(records, decoded);
      return std::vector{alone, records, more, decoded};
    });
  }
}

}  // namespace
}  // namespace abtrain::ops
