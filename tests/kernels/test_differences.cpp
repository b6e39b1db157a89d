// Kernels on differences of gradients: codes and sketches.
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "code_buffers.h"
#include "kernels/orders/count_sketch.h"
#include "kernels/orders/difference_codes.h"

namespace abtrain::kernels {
namespace {

TEST(DifferenceCodesKernel, EqualTheCpuToTheBit) {
  for (const std::int64_t numel : {1, 256, 600}) {
    const at::Tensor first = random_floats(numel, 1);
    const at::Tensor second = random_floats(numel, 2);
    const std::int64_t count = (numel + kRecordNumbers - 1) / kRecordNumbers;
    at::Tensor records[2];
    at::Tensor numbers[2];
    at::Tensor more[2];
    for (int i = 0; i < 2; ++i) {
      records[i] = at::zeros({count * kRecordBytes}, at::kByte);
      more[i] = at::zeros_like(records[i]);
      numbers[i] = at::zeros({count * kRecordNumbers});
      const EncodeDifference encode{
          first.const_data_ptr<float>(), nullptr,
          numel == 1 ? nullptr : second.const_data_ptr<float>(), numel,
          records[i].mutable_data_ptr<std::uint8_t>()};
      const DecodeDifferences decode{
          records[i].const_data_ptr<std::uint8_t>(), count, numbers[i].mutable_data_ptr<float>()};
      // Then the difference of what the records stand for and the second.
      EncodeDifference again = encode;
      again.first = nullptr;
      again.kept = records[i].const_data_ptr<std::uint8_t>();
      again.second = second.const_data_ptr<float>();
      again.records = more[i].mutable_data_ptr<std::uint8_t>();
      if (i == 0) {
        work_on_host(encode);
        work_on_host(decode);
        work_on_host(again);
      } else {
        encode_difference(encode, nullptr);
        decode_differences(decode, nullptr);
        encode_difference(again, nullptr);
      }
    }
    EXPECT_TRUE(same_bits(more[0], more[1])) << numel;
    EXPECT_TRUE(same_bits(records[0], records[1])) << numel;
    EXPECT_TRUE(same_bits(numbers[0], numbers[1])) << numel;
  }
}

TEST(CountSketchKernel, EqualsTheCpuToTheBit) {
  for (const std::int64_t numel : {1, 100, 5000}) {
    for (const std::int64_t buckets : {1, 12, 300}) {
      const at::Tensor first = random_floats(numel, 1);
      const at::Tensor second = random_floats(numel, 2);
      at::Tensor out[2];
      for (int i = 0; i < 2; ++i) {
        out[i] = at::zeros({buckets});
        CountSketch job{
            first.const_data_ptr<float>(),
            numel == 100 ? nullptr : second.const_data_ptr<float>(),
            numel,
            buckets,
            7,
            nullptr,
            out[i].mutable_data_ptr<float>()};
        const at::Tensor parts = at::zeros({sketch_parts(job) * buckets});
        job.parts = parts.mutable_data_ptr<float>();
        i == 0 ? work_on_host(job) : static_cast<void>(count_sketch(job, nullptr));
      }
      EXPECT_TRUE(same_bits(out[0], out[1])) << numel << " " << buckets;
    }
  }
}

}  // namespace
}  // namespace abtrain::kernels
