// Named values and tensors, saved and given out again.
#include "state/archive.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "error_of.h"

namespace abtrain::state {
namespace {

at::Tensor numbers(at::IntArrayRef sizes) {
  return at::arange(c10::multiply_integers(sizes), at::kFloat).reshape(sizes);
}

void save(State& state, const std::string& name, at::Tensor tensor) {
  Archive::saving(state).tensor(name, tensor, Owner::Worker);
}

void load(State& state, const std::string& name, at::Tensor& tensor) {
  Archive::loading(state).tensor(name, tensor, Owner::Worker);
}

void expect_damaged(const std::string& name, const std::function<void()>& call) {
  expect_error([&] { call(); }, ErrorKind::DamagedData, {"'" + name + "'"});
}

struct Values {
  std::int64_t integer = 0;
  double real = 0;
  bool flag = false;
  std::string text;
  std::vector<std::int64_t> integers = {7};
  std::vector<double> reals = {7};
  nlohmann::ordered_json json;

  void archive(Archive& archive) {
    archive.value("integer", integer);
    archive.value("real", real);
    archive.value("flag", flag);
    archive.value("text", text);
    archive.value("integers", integers);
    archive.value("reals", reals);
    archive.value("json", json);
  }
  bool operator==(const Values&) const = default;
};

TEST(ArchiveValues, AllTypesComeBackBitForBit) {
  Values saved{
      std::numeric_limits<std::int64_t>::min(),
      0.1 + 0.2,
      true,
      "quote \" and \n \xc3\xa9",
      {-1, 0, std::numeric_limits<std::int64_t>::max()},
      {5e-324, -0.0, 1e308},
      {{"b", 1}, {"a", {1.5, nullptr}}}};
  State state;
  Archive saving = Archive::saving(state);
  EXPECT_FALSE(saving.is_loading());
  saved.archive(saving);
  // As a checkpoint does it: by its text.
  State read;
  *read.values = nlohmann::ordered_json::parse(state.values->dump());
  Values loaded;
  Archive loading = Archive::loading(read);
  EXPECT_TRUE(loading.is_loading());
  loaded.archive(loading);
  EXPECT_EQ(loaded, saved);
  EXPECT_TRUE(std::signbit(loaded.reals[1]));
}

TEST(ArchiveValues, EmptyListsAndTexts) {
  Values saved;
  saved.integers.clear();
  saved.reals.clear();
  State state;
  Archive saving = Archive::saving(state);
  saved.archive(saving);
  Values loaded;
  loaded.text = "overwritten";
  Archive loading = Archive::loading(state);
  loaded.archive(loading);
  EXPECT_EQ(loaded, saved);
}

TEST(ArchiveValues, WhatIsMissingOrOfAnotherTypeIsNamed) {
  State state;
  std::string text = "ten";
  Archive::saving(state).value("step", text);
  Archive archive = Archive::loading(state);
  std::int64_t step = 3;
  expect_damaged("step", [&] { archive.value("step", step); });
  expect_damaged("epoch", [&] { archive.value("epoch", step); });
  std::vector<double> list;
  expect_damaged("step", [&] { archive.value("step", list); });
  bool flag = false;
  expect_damaged("step", [&] { archive.value("step", flag); });
  EXPECT_EQ(step, 3);
  state.values = std::make_unique<nlohmann::ordered_json>();  // a torn file
  expect_damaged("step", [&] { archive.value("step", text); });
}

TEST(ArchiveTensors, ValuesComeBackInPlace) {
  State state;
  save(state, "w", numbers({2, 3}));
  at::Tensor tensor = at::zeros({2, 3});
  const void* before = tensor.data_ptr();
  load(state, "w", tensor);
  EXPECT_EQ(tensor.data_ptr(), before);
  EXPECT_TRUE(at::equal(tensor, numbers({2, 3})));
}

TEST(ArchiveTensors, SavingTakesThemAsTheyAre) {
  State state;
  const at::Tensor tensor = numbers({4});
  save(state, "w", tensor);
  EXPECT_EQ(state.own.at("w").data_ptr(), tensor.data_ptr());
}

TEST(ArchiveTensors, UndefinedAndEmptyOnes) {
  State state;
  save(state, "undefined", at::Tensor());
  save(state, "empty", at::zeros({0}));
  save(state, "full", numbers({3}));
  for (const std::string name : {"undefined", "empty"}) {
    at::Tensor undefined;
    load(state, name, undefined);
    EXPECT_FALSE(undefined.defined()) << name;
    at::Tensor empty = at::zeros({0});
    load(state, name, empty);
    EXPECT_TRUE(empty.defined()) << name;
    EXPECT_EQ(empty.numel(), 0) << name;
  }
  at::Tensor undefined;
  load(state, "full", undefined);
  ASSERT_TRUE(undefined.defined());
  EXPECT_TRUE(at::equal(undefined, numbers({3})));
}

TEST(ArchiveTensors, OwnAndReplicasAreKeptApart) {
  State state;
  at::Tensor own = at::full({2}, 1.0f);
  at::Tensor shared = at::full({2}, 2.0f);
  Archive saving = Archive::saving(state);
  saving.tensor("w", own, Owner::Worker);
  saving.tensor("w", shared, Owner::Replicas);
  saving.tensor("v", shared, Owner::Replicas);
  EXPECT_EQ(state.own.size(), 1u);
  EXPECT_EQ(state.replicas.size(), 2u);
  Archive loading = Archive::loading(state);
  at::Tensor tensor;
  loading.tensor("w", tensor, Owner::Worker);
  EXPECT_TRUE(at::equal(tensor, own));
  tensor = at::Tensor();
  loading.tensor("w", tensor, Owner::Replicas);
  EXPECT_TRUE(at::equal(tensor, shared));
  expect_damaged("v", [&] { loading.tensor("v", tensor, Owner::Worker); });
}

TEST(ArchiveTensors, MissingOnesAndOtherSizesAreNamed) {
  State state;
  save(state, "w", numbers({2, 3}));
  save(state, "none", at::Tensor());
  at::Tensor tensor = at::full({5}, 9.0f);
  expect_damaged("v", [&] { load(state, "v", tensor); });
  expect_damaged("w", [&] { load(state, "w", tensor); });
  expect_damaged("none", [&] { load(state, "none", tensor); });
  EXPECT_TRUE(at::equal(tensor, at::full({5}, 9.0f)));
  at::Tensor empty = at::zeros({0});
  expect_damaged("w", [&] { load(state, "w", empty); });
  at::Tensor undefined;
  expect_damaged("v", [&] { load(state, "v", undefined); });
}

TEST(ArchiveTensors, ChannelsLastViewsGetTheirValuesInPlace) {
  const at::Tensor values = numbers({2, 3, 4, 5});
  for (const bool saved_so : {false, true}) {
    State state;
    // A view into a block, laid out as a model's convolutions are.
    at::Tensor block = at::zeros({3 * 120});
    at::Tensor view = block.narrow(0, 120, 120).view({2, 4, 5, 3}).permute({0, 3, 1, 2});
    ASSERT_TRUE(view.is_contiguous(at::MemoryFormat::ChannelsLast));
    save(state, "w", saved_so ? values.contiguous(at::MemoryFormat::ChannelsLast) : values);
    load(state, "w", view);
    EXPECT_TRUE(at::equal(view, values));
    EXPECT_TRUE(at::equal(block.narrow(0, 120, 120), values.permute({0, 2, 3, 1}).reshape(-1)));
    EXPECT_EQ(block.narrow(0, 0, 120).count_nonzero().item<std::int64_t>(), 0);
    EXPECT_EQ(block.narrow(0, 240, 120).count_nonzero().item<std::int64_t>(), 0);
  }
}

TEST(ArchiveTensors, LeavesOfAutogradAreFilledToo) {
  State state;
  save(state, "w", numbers({3}));
  at::Tensor leaf = at::zeros({3}).requires_grad_();
  load(state, "w", leaf);
  EXPECT_TRUE(leaf.is_leaf());
  EXPECT_TRUE(at::equal(leaf.detach(), numbers({3})));
}

TEST(ArchiveBugs, ANameTwiceAndOtherTypesAreRefused) {
  State state;
  save(state, "w", numbers({3}));
  EXPECT_THROW(save(state, "w", numbers({3})), std::logic_error);
  EXPECT_THROW(save(state, "half", at::zeros({3}, at::kHalf)), std::logic_error);
  std::int64_t step = 1;
  Archive archive = Archive::saving(state);
  archive.value("step", step);
  EXPECT_THROW(archive.value("step", step), std::logic_error);
}

}  // namespace
}  // namespace abtrain::state
