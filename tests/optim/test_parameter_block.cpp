// Parameters in flat buffers: where each lies, what is shared with the tensors,
// and what outlives the block.
#include "optim/parameter_block.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "error_of.h"

namespace abtrain::optim {
namespace {

using Floats = std::vector<float>;

Floats floats(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous().view({-1});
  const auto* data = flat.const_data_ptr<float>();
  return {data, data + flat.numel()};
}

// first, first + 1, ...
at::Tensor counted(float first, at::IntArrayRef sizes) {
  return at::arange(first, first + static_cast<float>(c10::multiply_integers(sizes)), at::kFloat)
      .view(sizes);
}

// A weight that decays, a bias that does not, and a factor. The weight is a
// transposed one: its memory holds the columns of 1 2 3 | 4 5 6.
struct Three {
  at::Tensor weight = counted(1, {2, 3}).t().contiguous().t();
  at::Tensor bias = counted(10, {2});
  at::Tensor factor = counted(20, {4, 1});
  std::vector<ParameterRef> list() {
    return {
        {"weight", &weight, true, false, 0},
        {"bias", &bias, false, false, 1},
        {"factor", &factor, true, true, 2}};
  }
};

TEST(ParameterBlock, LaysItsParametersSideBySide) {
  Three p;
  ParameterBlock block(p.list(), true, 2);
  EXPECT_EQ(block.numel(), 12);
  EXPECT_EQ(block.offset(0), 0);
  EXPECT_EQ(block.offset(1), 6);
  EXPECT_EQ(block.offset(2), 8);
  EXPECT_EQ(block.offset(3), 12);
  EXPECT_EQ(floats(block.values()), (Floats{1, 4, 2, 5, 3, 6, 10, 11, 20, 21, 22, 23}));
  // The tensors are what they were, in their own memory layout.
  EXPECT_TRUE(at::equal(p.weight, counted(1, {2, 3})));
  EXPECT_EQ(p.weight.strides(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_TRUE(at::equal(p.factor, counted(20, {4, 1})));
  EXPECT_EQ(floats(p.bias), (Floats{10, 11}));
  EXPECT_EQ(block.parameters()[2].name, "factor");
  EXPECT_EQ(block.moment_count(), 2);
  EXPECT_EQ(floats(block.moments()), Floats(24, 0));
  EXPECT_EQ(floats(block.gradients()), Floats(12, 0));
  EXPECT_EQ(floats(at::stack(block.steps())), Floats(3, 0));
}

TEST(ParameterBlock, SharesItsMemoryWithTheTensors) {
  Three p;
  ParameterBlock block(p.list(), true, 1);
  block.values().add_(100);
  EXPECT_EQ(floats(p.bias), (Floats{110, 111}));
  EXPECT_EQ(floats(p.weight), (Floats{101, 102, 103, 104, 105, 106}));
  block.moment_views(0)[1].fill_(7);
  EXPECT_EQ(floats(block.moments()), (Floats{0, 0, 0, 0, 0, 0, 7, 7, 0, 0, 0, 0}));
  // A backward pass adds: here the gradient of sum(w * c) + sum(bias) / 2.
  const at::Tensor c = counted(1, {2, 3});
  for (int pass = 1; pass <= 2; ++pass) {
    ((p.weight * c).sum() + p.bias.sum() / 2).backward();
    const auto n = static_cast<float>(pass);
    EXPECT_EQ(
        floats(block.gradients()),
        (Floats{n, 4 * n, 2 * n, 5 * n, 3 * n, 6 * n, n / 2, n / 2, 0, 0, 0, 0}));
  }
  block.zero_gradients();
  EXPECT_EQ(floats(block.gradients()), Floats(12, 0));
  EXPECT_EQ(floats(p.weight.grad()), Floats(6, 0));
}

TEST(ParameterBlock, PacksATensorWithGaps) {
  at::Tensor rows = counted(0, {3, 4}).narrow(1, 1, 2);
  const ParameterBlock block({{"rows", &rows}}, false, 0);
  EXPECT_EQ(block.numel(), 6);
  EXPECT_EQ(floats(rows), (Floats{1, 2, 5, 6, 9, 10}));
  EXPECT_TRUE(rows.is_contiguous());
}

TEST(ParameterBlock, ThatIsNotTrainedHasOnlyValues) {
  Three p;
  ParameterBlock block(p.list(), false, 2);
  EXPECT_FALSE(block.gradients().defined());
  EXPECT_FALSE(block.moments().defined());
  EXPECT_EQ(block.moment_count(), 0);
  EXPECT_FALSE(p.weight.requires_grad());
  EXPECT_TRUE(block.slices().empty());
  EXPECT_NO_THROW(block.zero_gradients());
  EXPECT_EQ(ParameterBlock().numel(), 0);
}

TEST(ParameterBlock, DropsItsGradients) {
  Three p;
  ParameterBlock block(p.list(), true, 1);
  EXPECT_TRUE(p.bias.grad().defined());
  block.drop_gradients();
  EXPECT_FALSE(block.gradients().defined());
  EXPECT_FALSE(p.bias.grad().defined());
  EXPECT_TRUE(block.slices().empty());
}

// What the parameters of each slice are, and the first element of each of its values.
struct Part {
  bool decays, is_factor, is_matrix;
  Floats begins;
  bool operator==(const Part&) const = default;
};

std::vector<Part> parts_of(const ParameterBlock& block) {
  std::vector<Part> parts;
  for (const Slice& slice : block.slices()) {
    EXPECT_EQ(slice.gradients.size(), slice.values.size());
    EXPECT_EQ(slice.steps.size(), slice.values.size());
    EXPECT_EQ(slice.indices.size(), slice.values.size());
    EXPECT_EQ(slice.moments.size(), static_cast<std::size_t>(block.moment_count()));
    Part part{slice.decays, slice.is_factor, slice.is_matrix, {}};
    for (std::size_t i = 0; i < slice.values.size(); ++i) {
      part.begins.push_back(slice.values[i][0].item<float>());
      // Each list speaks of the same place.
      const auto at = slice.values[i].storage_offset();
      EXPECT_EQ(slice.gradients[i].storage_offset(), at);
      EXPECT_EQ(block.offset(slice.indices[i]), at);
      EXPECT_EQ(slice.moments[0][i].storage_offset(), at);
      EXPECT_EQ(slice.moments[1][i].storage_offset(), at + block.numel());
    }
    parts.push_back(part);
  }
  return parts;
}

TEST(Slices, AreTrainedAlike) {
  Three p;
  at::Tensor norm = counted(30, {1});
  at::Tensor last = counted(40, {3});
  std::vector<ParameterRef> list = p.list();
  list.push_back({"norm", &norm, false, false, 3});
  list.push_back({"last", &last, true, false, 4});
  ParameterBlock block(std::move(list), true, 2);
  EXPECT_EQ(
      parts_of(block), (std::vector<Part>{
                           {true, false, true, {1}},
                           {false, false, false, {10, 30}},
                           {true, true, true, {20}},
                           {true, false, false, {40}}}));
}

// Moments k are 100 * (k + 1) + the place in the block, steps 5, 6, ...
void mark(ParameterBlock& block) {
  for (int k = 0; k < block.moment_count(); ++k) {
    block.moments()
        .narrow(0, k * block.numel(), block.numel())
        .copy_(counted(100.0F * static_cast<float>(k + 1), {block.numel()}));
  }
  for (std::size_t i = 0; i < block.steps().size(); ++i) {
    block.steps()[i].fill_(5.0 + static_cast<double>(i));
  }
}

TEST(Adopt, TakesTheMomentsOfTheSameParameters) {
  Three p;
  ParameterBlock old(p.list(), true, 2);
  mark(old);
  // In another order and with one more; the factor has a new basis.
  Three q;
  at::Tensor more = counted(0, {2});
  ParameterBlock block(
      {{"more", &more},
       {"factor", &q.factor, true, true},
       {"bias", &q.bias, false},
       {"weight", &q.weight}},
      true, 2);
  block.adopt(old);
  EXPECT_EQ(floats(block.moments()), (Floats{0,   0,   0,   0,   0,   0,    // more, factor
                                             106, 107,                      // bias
                                             100, 101, 102, 103, 104, 105,  // weight
                                             0,   0,   0,   0,   0,   0,   206,
                                             207, 200, 201, 202, 203, 204, 205}));
  EXPECT_EQ(floats(at::stack(block.steps())), (Floats{0, 0, 6, 5}));
  // A copy, not a view.
  old.moments().zero_();
  EXPECT_EQ(block.moment_views(0)[2][0].item<float>(), 106);
}

TEST(Adopt, LeavesParametersOfAnotherElementCountAlone) {
  at::Tensor a = counted(0, {4});
  at::Tensor b = counted(0, {5});
  ParameterBlock old({{"x", &a}}, true, 1);
  mark(old);
  ParameterBlock block({{"x", &b}}, true, 1);
  block.adopt(old);
  EXPECT_EQ(floats(block.moments()), Floats(5, 0));
  EXPECT_EQ(block.steps()[0].item<float>(), 0);
}

TEST(Adopt, TakesNoMomentsInAnotherOrder) {
  at::Tensor rows = counted(0, {2, 3});
  at::Tensor columns = rows.t().contiguous().t();
  ParameterBlock old({{"x", &rows}}, true, 1);
  ParameterBlock block({{"x", &columns}}, true, 1);
  EXPECT_THROW(block.adopt(old), std::logic_error);
}

class Archived : public ::testing::Test {
 protected:
  Archived() {
    mark(block_);
    auto archive = state::Archive::saving(state_);
    block_.archive(archive, "b.", state::Owner::Replicas);
  }
  static void load(ParameterBlock& into, state::State& from) {
    auto archive = state::Archive::loading(from);
    into.archive(archive, "b.", state::Owner::Replicas);
  }

  Three saved_;
  ParameterBlock block_{saved_.list(), true, 2};
  state::State state_;
};

TEST_F(Archived, ComesBackWithItsLayout) {
  EXPECT_TRUE(state_.own.empty());
  EXPECT_EQ(state_.replicas.size(), 3U);  // values, moments, steps
  // Another layout, values, gradients.
  Three p;
  p.weight = at::zeros({2, 3});
  p.bias = at::zeros({2});
  p.factor = at::zeros({4, 1});
  ParameterBlock block(p.list(), true, 2);
  load(block, state_);
  EXPECT_TRUE(at::equal(p.weight, counted(1, {2, 3})));
  EXPECT_EQ(p.weight.strides(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_TRUE(at::equal(p.bias, counted(10, {2})));
  EXPECT_TRUE(at::equal(block.values(), block_.values()));
  EXPECT_TRUE(at::equal(block.moments(), block_.moments()));
  EXPECT_EQ(floats(at::stack(block.steps())), (Floats{5, 6, 7}));
  // It can go on.
  EXPECT_TRUE(p.weight.requires_grad());
  (p.weight * counted(1, {2, 3})).sum().backward();
  EXPECT_EQ(floats(block.gradients().narrow(0, 0, 6)), (Floats{1, 4, 2, 5, 3, 6}));
}

TEST_F(Archived, IsRefusedWhereItsStridesAreNoLayout) {
  for (const std::vector<std::int64_t>& strides : std::vector<std::vector<std::int64_t>>{
           {1}, {3, 1, 1}, {0, 1}, {-3, 1}, {1, 1}, {4, 1}, {3, 2}}) {
    (*state_.values)["b.strides.weight"] = strides;
    Three p;
    ParameterBlock block(p.list(), true, 2);
    expect_error([&] { load(block, state_); }, ErrorKind::DamagedData, {"'weight'"});
  }
  (*state_.values)["b.strides.weight"] = {3, 1};  // rows, as any other
  Three p;
  ParameterBlock block(p.list(), true, 2);
  load(block, state_);
  EXPECT_EQ(floats(p.weight), (Floats{1, 4, 2, 5, 3, 6}));
}

TEST_F(Archived, IsRefusedByABlockOfAnotherElementCount) {
  Three p;
  p.bias = counted(0, {3});
  ParameterBlock block(p.list(), true, 2);
  expect_error([&] { load(block, state_); }, ErrorKind::DamagedData);
}

}  // namespace
}  // namespace abtrain::optim
