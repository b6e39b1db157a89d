// What is lost of gradients as a training has them, against the mean.
#include "train/real_gradients.h"

#include <ATen/ops/randperm.h>
#include <gtest/gtest.h>

#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

// Fashion-MNIST's black borders leave few large numbers in many chunks.
struct GradientCase {
  std::string data;
  double low_bits;   // at most this times the error of topk at 0.5 bits
  double high_bits;  // and at 2 bits
  double permuted;   // at least this times worse at 0.5 bits; 1.5 at 2 bits
};

class RealGradients : public ::testing::TestWithParam<GradientCase> {
 protected:
  void SetUp() override {
    real_ = testing::real_gradients(4, 10, GetParam().data);
    if (!real_) {
      GTEST_SKIP() << "no " << GetParam().data << " here";
    }
  }
  std::optional<testing::RealGradients> real_;
};
INSTANTIATE_TEST_SUITE_P(
    Data, RealGradients,
    ::testing::Values(
        GradientCase{"fashion-mnist", 1.4, 1.0, 1.5}, GradientCase{"cifar10", 1.15, 1.0, 1.4}),
    [](const auto& test) { return test.param.data.substr(0, 5); });

double error_of(
    ReducerOptions options, const std::vector<Slot>& slots,
    const std::vector<at::Tensor>& gradients) {
  options.min_numel = 4096;
  return vnmse(options, slots, static_cast<int>(gradients.size()), [&](int worker, std::int64_t) {
    return gradients[static_cast<std::size_t>(worker)];
  });
}

// The large numbers of a gradient lie together: chosen by chunks, without their
// places, they are worth as much as chosen one by one; but not once they are
// scattered.
TEST_P(RealGradients, HaveTheirLargeNumbersTogether) {
  const std::int64_t numel = real_->of_worker[0].numel();
  const at::Tensor order = at::randperm(numel, at::detail::createCPUGenerator(1));
  std::vector<at::Tensor> permuted;
  for (const at::Tensor& gradient : real_->of_worker) {
    permuted.push_back(gradient.index_select(0, order));
  }
  for (const double bits : {0.5, 2.0}) {
    ReducerOptions topk = scheme("topk");
    ReducerOptions by_chunks = scheme("topk-chunked");
    topk.bits = by_chunks.bits = bits;
    const double single = error_of(topk, real_->slots, real_->of_worker);
    const double chunked = error_of(by_chunks, real_->slots, real_->of_worker);
    const double scattered = error_of(by_chunks, one_slot({numel}), permuted);
    const bool low = bits < 1;
    EXPECT_LT(chunked, (low ? GetParam().low_bits : GetParam().high_bits) * single) << bits;
    EXPECT_GT(scattered, (low ? GetParam().permuted : 1.5) * chunked) << bits;
  }
}

// A rotation of blocks of 1,024 numbers spreads what is large almost as well as
// one of the whole.
TEST_P(RealGradients, AreSpreadAlmostAsWellByBlocks) {
  const auto error = [&](Rotation rotation) {
    ReducerOptions options = scheme("thc");
    options.rotation = rotation;
    return error_of(options, real_->slots, real_->of_worker);
  };
  const double full = error(Rotation::Full);
  const double block = error(Rotation::Block);
  RecordProperty("block_to_full", std::to_string(block / full));
  EXPECT_LT(block, 2 * full);
}

}  // namespace
}  // namespace abtrain::compress
