#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "array_files.h"
#include "data/arrays/array_set.h"
#include "data/augment.h"
#include "data/data_check.h"
#include "data/dataset.h"
#include "data/device_images.h"
#include "data/images/float_images.h"
#include "data_files.h"
#include "state/safetensors_header.h"
#include "temp_folder.h"

namespace abtrain::data {
namespace {

// As numpy.save writes them, in format 1.0.
std::string npy(const std::string& descr, const std::string& shape, const std::string& data) {
  std::string header =
      formatted("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  return formatted("\x93NUMPY{}{}", std::string{'\1', '\0'}, "") +
         std::string{
             static_cast<char>(header.size() % 256), static_cast<char>(header.size() / 256)} +
         header + data;
}

std::string shape_of(const at::Tensor& tensor) {
  return formatted("({},)", state::shape_text(tensor.sizes().vec()));
}

class Arrays : public ::testing::Test {
 protected:
  Arrays() {
    options_.name = "arrays";
    options_.root = folder_.file("set");
    std::filesystem::create_directory(*options_.root);
  }
  // As abtrain.save_arrays writes it, but x comes first.
  void put(
      const std::string& part, const at::Tensor& x, const at::Tensor& y,
      const std::map<std::string, std::string>& metadata = {}) {
    write(part + ".safetensors", arrays_file(x, y, metadata));
  }
  void put_both(const at::Tensor& x, const at::Tensor& y) {
    put("train", x, y);
    put("test", x, y);
  }
  void write(const std::string& name, const std::string& content) {
    write_file(*options_.root + "/" + name, Bytes(content.begin(), content.end()));
  }
  void expect_refused(ErrorKind kind, const std::vector<std::string>& parts) {
    expect_error([&] { load_dataset(options_); }, kind, parts);
    expect_error([&] { dataset_shape(options_); }, kind, parts);
  }
  static Batch all_of(const Dataset& set, const DataOptions& options, const Examples& examples) {
    return Augment(options, set, 1).evaluation(examples, 0, examples.size());
  }

  TempFolder folder_;
  DataOptions options_;
};

TEST_F(Arrays, BytesAreImagesLikeOthers) {
  const ByteImages images = random_images(40, 3, 6, 5);
  put("train", images.pixels, images.labels);
  put("test", images.pixels.narrow(0, 0, 7).contiguous(), images.labels.narrow(0, 3, 7) + 4);
  const Dataset set = load_dataset(options_);
  EXPECT_EQ(set.sizes, (std::vector<std::int64_t>{3, 6, 5}));
  EXPECT_EQ(set.channels, 3);
  EXPECT_EQ(set.height, 6);
  EXPECT_EQ(set.width, 5);
  EXPECT_EQ(set.classes, 14);  // the largest label is in the test set
  EXPECT_FALSE(set.regression);
  EXPECT_EQ(set.context, 0);
  EXPECT_EQ(set.test.size(), 7);
  const Batch batch = all_of(set, options_, set.train);
  EXPECT_TRUE(at::equal(batch.inputs, images.pixels.to(at::kFloat) / 255));
  EXPECT_TRUE(at::equal(batch.labels, images.labels));
  const DatasetShape shape = dataset_shape(options_);
  EXPECT_EQ(shape.sizes, set.sizes);
  EXPECT_EQ(shape.classes, 14);
  EXPECT_EQ(shape.train, 40);

  // Augmented as any data set of bytes.
  options_.augment = AugmentName::CropFlip;
  options_.erase = 0.5;
  options_.pad = 2;
  options_.mean = {0.1, 0.2, 0.3};
  options_.std = {0.5, 0.6, 0.7};
  const Dataset augmented = load_dataset(options_);
  Dataset other = augmented;
  other.train = images;
  const Indices indices = first(40);
  EXPECT_TRUE(at::equal(
      Augment(options_, augmented, 3).training(augmented.train, indices, 2).inputs,
      Augment(options_, other, 3).training(other.train, indices, 2).inputs));
}

TEST_F(Arrays, ValuesAreTakenAsTheyAre) {
  const at::Tensor x = at::rand({30, 4, 6}) * 9 - 3;
  const at::Tensor y = at::arange(30, at::kLong).remainder(5);
  options_.mean = {0.5};
  options_.std = {2};
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble}) {
    put_both(x.to(type), y.to(at::kInt));
    const Dataset set = load_dataset(options_);
    EXPECT_EQ(set.sizes, (std::vector<std::int64_t>{4, 6}));
    EXPECT_EQ(set.channels, 1);
    EXPECT_EQ(set.height, 4);
    const Batch batch = all_of(set, options_, set.train);
    EXPECT_TRUE(at::equal(batch.inputs, (x.to(type).to(at::kFloat).unsqueeze(1) - 0.5) / 2));
    EXPECT_TRUE(at::equal(batch.labels, y));
  }
}

// As bytes / 255 in fp32 are augmented like the bytes.
TEST_F(Arrays, ValuesAreAugmentedLikeBytes) {
  const ByteImages images = random_images(20, 2, 8, 8);
  options_.augment = AugmentName::CropFlip;
  options_.erase = 0.5;
  put("train", images.pixels, images.labels);
  const Dataset bytes = load_dataset(options_);
  put("train", images.pixels.to(at::kFloat) / 255, images.labels);
  const Dataset values = load_dataset(options_);
  const Indices indices = first(bytes.train.size());
  EXPECT_TRUE(at::equal(
      Augment(options_, bytes, 3).training(bytes.train, indices, 1).inputs,
      Augment(options_, values, 3).training(values.train, indices, 1).inputs));
  options_.pool = 4;
  const Dataset pooled_values = load_dataset(options_);
  EXPECT_EQ(pooled_values.height, 4);
  EXPECT_EQ(pooled_values.sizes, (std::vector<std::int64_t>{2, 4, 4}));
  put("train", images.pixels, images.labels);
  const Dataset pooled_bytes = load_dataset(options_);
  const auto& a = std::get<FloatImages>(pooled_bytes.train).values;
  const auto& b = std::get<FloatImages>(pooled_values.train).values;
  EXPECT_LT((a - b).abs().max().item<float>(), 1e-6);
}

TEST_F(Arrays, OtherFormsAreRowsOfNumbers) {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{24}, {2, 3, 2, 2}, {1}}) {
    std::vector<std::int64_t> all = sizes;
    all.insert(all.begin(), 10);
    const at::Tensor x = at::rand(all);
    put_both(x, at::arange(10, at::kLong));
    const Dataset set = load_dataset(options_);
    EXPECT_EQ(set.sizes, sizes);
    EXPECT_EQ(set.height, 1);
    EXPECT_EQ(set.width, x[0].numel());
    EXPECT_TRUE(at::equal(all_of(set, options_, set.test).inputs, x.view({10, 1, 1, -1})));
    options_.standardize = true;
    const Dataset standard = load_dataset(options_);
    const at::Tensor z = all_of(standard, options_, standard.train).inputs;
    EXPECT_LT(z.mean(0).abs().max().item<float>(), 1e-5);
    options_.standardize = false;
    options_.augment = AugmentName::Crop;
    expect_refused(ErrorKind::Config, {"data.augment", "not images"});
    options_.augment = AugmentName::None;
  }
}

TEST_F(Arrays, Targets) {
  const at::Tensor x = at::rand({10, 5});
  const at::Tensor y = at::rand({10, 3}).to(at::kDouble);
  put_both(x, y);
  Dataset set = load_dataset(options_);
  EXPECT_TRUE(set.regression);
  EXPECT_EQ(set.classes, 3);
  EXPECT_TRUE(at::equal(all_of(set, options_, set.train).labels, y.to(at::kFloat)));
  put_both((x * 255).to(at::kByte), y.select(1, 0).contiguous());
  set = load_dataset(options_);
  EXPECT_EQ(set.classes, 1);
  const Examples held = hold_out(set.train, 4, 1);
  const Augment augment(options_, set, 1);
  const Batch batch = augment.training(set.train, Indices{2, 0}, 0);
  EXPECT_EQ(batch.labels.sizes(), (std::vector<std::int64_t>{2, 1}));
  // As made on a device, into new tensors and into old ones.
  const Examples none;
  DeviceCopies copies(set, none);
  const DeviceImages& there = copies.on(at::kCPU).train;
  Batch made;
  for (const std::int64_t first : {1, 2}) {
    augment.training(there, at::tensor({first, std::int64_t{0}}), 0, at::kFloat, made);
  }
  EXPECT_TRUE(at::equal(made.labels, batch.labels));
  EXPECT_TRUE(at::equal(made.inputs, batch.inputs));
  // The training examples that are left, and those held out, are all.
  const at::Tensor seen =
      at::cat({all_of(set, options_, set.train).labels, all_of(set, options_, held).labels});
  EXPECT_TRUE(at::equal(
      std::get<0>(seen.flatten().sort()), std::get<0>(y.select(1, 0).to(at::kFloat).sort())));
  std::filesystem::remove(*options_.root + "/test.safetensors");
  put("train", x, y.fill_(std::numeric_limits<double>::infinity()));
  expect_refused(
      ErrorKind::DamagedData,
      {"set/train.safetensors: y of example 0, number 0: expected a finite number"});
}

TEST_F(Arrays, Tokens) {
  const at::Tensor x = at::randint(50, {12, 6}, at::kLong);
  x[3][2] = 60;
  at::Tensor y = at::randint(4, {12, 6}, at::kLong);
  y[0].fill_(kIgnoredLabel);
  y[5][5] = 7;
  for (const at::ScalarType type : {at::kLong, at::kInt, at::kUInt16}) {
    put_both(x.to(type), y);
    const Dataset set = load_dataset(options_);
    EXPECT_EQ(set.context, 6);
    EXPECT_EQ(set.vocabulary, 61);
    EXPECT_EQ(set.classes, 8);
    EXPECT_TRUE(set.token_labels);
    const Batch batch = all_of(set, options_, set.train);
    EXPECT_TRUE(at::equal(batch.inputs, x));
    EXPECT_TRUE(at::equal(batch.labels, y));
    EXPECT_TRUE(set.ignores_labels);
    EXPECT_TRUE(at::equal(set.train.counted_labels(), y.ne(kIgnoredLabel).sum(1)));
    const Examples last = chosen(set.train, at::arange(11, 12));
    EXPECT_EQ(last.counted_labels().item<std::int64_t>(), 6);
  }
  put_both(x, y.select(1, 5).contiguous());
  expect_refused(ErrorKind::DamagedData, {"the label of example 0", "found -100"});
  put_both(x, y.select(1, 5).abs().remainder(8));
  const Dataset set = load_dataset(options_);
  EXPECT_FALSE(set.token_labels);
  EXPECT_FALSE(set.ignores_labels);
  EXPECT_EQ(all_of(set, options_, set.test).labels.sizes(), (std::vector<std::int64_t>{12}));
  options_.vocabulary = 60;
  expect_refused(ErrorKind::DamagedData, {"data.vocabulary", "found 60"});
  options_.vocabulary = 100;
  EXPECT_EQ(load_dataset(options_).vocabulary, 100);
  options_.standardize = true;
  expect_refused(ErrorKind::Config, {"data.standardize: ", "rows of 6 tokens"});
}

TEST_F(Arrays, WithoutATestPartSomeAreHeldOut) {
  const at::Tensor x = at::arange(200, at::kFloat).view({200, 1});
  put("train", x, at::arange(200, at::kLong));
  options_.test_share = 0.1;
  const Dataset set = load_dataset(options_);
  EXPECT_EQ(set.train.size(), 180);
  EXPECT_EQ(set.test.size(), 20);
  const at::Tensor train = all_of(set, options_, set.train).labels;
  const at::Tensor test = all_of(set, options_, set.test).labels;
  EXPECT_TRUE(at::equal(std::get<0>(at::cat({train, test}).sort()), at::arange(200, at::kLong)));
  EXPECT_GT(test.max().item<std::int64_t>() - test.min().item<std::int64_t>(), 50);
  options_.subset = 30;
  EXPECT_TRUE(at::equal(
      all_of(load_dataset(options_), options_, load_dataset(options_).train).labels,
      train.narrow(0, 0, 30)));
  options_.subset = 181;
  expect_refused(ErrorKind::Config, {"data.subset: expected 0 .. 180"});
}

TEST_F(Arrays, Npy) {
  const at::Tensor x = at::rand({6, 4});
  const at::Tensor y = at::arange(6, at::kInt);
  write("train_x.npy", npy("<f4", shape_of(x), raw(x)));
  write("train_y.npy", npy("<i4", "(6,)", raw(y)));
  write("test_x.npy", npy("<f4", "(6, 4)", raw(x)));
  write("test_y.npy", npy("<i4", "(6,)", raw(y)));
  const Dataset set = load_dataset(options_);
  EXPECT_TRUE(at::equal(all_of(set, options_, set.train).inputs.view({6, 4}), x));
  EXPECT_EQ(set.classes, 6);

  const std::string good = npy("<f4", "(6, 4)", raw(x));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected a file of numpy.save"},
      {good.substr(0, 9), "only its first bytes"},
      {good.substr(0, 40), "its header should have"},
      {good.substr(0, good.size() - 1), "takes 96 bytes, but 95 follow"},
      {good + "x", "takes 96 bytes, but 97 follow"},
      {replaced("\x01", "\x09"), "format 1.0 to 3.0 of numpy.save, found 9.0"},
      {replaced("False", "True "), "Fortran order"},
      {replaced("<f4", ">f4"), "big-endian"},
      {replaced("'<f4'", "'|O' "), "Python objects"},
      {replaced("<f4", "<c8"), "found dtype '<c8'"},
      {replaced("'<f4'", "['a']"), "one of records"},
      {replaced("(6, 4)", "(6,-4)"), "expected a header with"},
      {replaced("(6, 4)", "(6; 4)"), "expected a header with"},
      {replaced("shape", "sharp"), "expected a header with"},
      {npy("<f4", "(4294967296, 4294967296, 4)", raw(x)), "takes"},
      {npy("<f4", "(9223372036854775807, 9223372036854775807)", ""), "takes"},
      {npy("<f4", "(0, 4)", ""), "expected examples x"},
      {npy("<f4", "()", std::string(4, 'a')), "expected examples x"},
      {npy("|b1", "(6, 4)", std::string(24, '\1')), "expected x of uint8"},
  };
  for (const auto& [content, message] : cases) {
    write("train_x.npy", content);
    expect_refused(ErrorKind::DamagedData, {"set/train_x.npy: ", message});
  }
  write("train_x.npy", good);
  write("train_y.npy", npy("<i4", "(5,)", raw(y.narrow(0, 0, 5))));
  expect_refused(ErrorKind::DamagedData, {"set/train_y.npy: expected y for each of the 6"});
  std::filesystem::remove(*options_.root + "/train_y.npy");
  expect_refused(ErrorKind::MissingInput, {"set/train_y.npy: no such file"});
}

TEST_F(Arrays, Refusals) {
  const at::Tensor x = at::rand({6, 4});
  const at::Tensor y = at::arange(6, at::kLong);
  const auto expect = [&](const at::Tensor& bad_x, const at::Tensor& bad_y,
                          const std::string& what) {
    put("train", bad_x, bad_y);
    expect_refused(ErrorKind::DamagedData, {"set/train.safetensors: ", what});
  };
  expect(x, at::arange(5, at::kLong), "expected y for each of the 6");
  expect(x, y - 1, "the label of example 0: expected 0 ..");
  expect(x, at::full({6}, std::int64_t{1} << 60, at::kLong), "the label of example 0");
  expect(x, y.view({6, 1}), "expected y of N integer labels");
  expect(x, at::rand({6, 1, 1}), "expected y of N integer labels");
  expect((x * 9).to(at::kInt).view({6, 2, 2}), y, "are tokens, N x T");
  expect((x * 9).to(at::kInt) - 9, y, "a token of example 0");
  expect(x.narrow(0, 0, 1), y.narrow(0, 0, 1), "at least two");
  put("train", x, y);
  put("test", at::rand({6, 5}), y);
  expect_refused(ErrorKind::DamagedData, {"set/test.safetensors: expected x with the dtype"});
  put("test", x, y.to(at::kFloat));
  expect_refused(ErrorKind::DamagedData, {"set/test.safetensors: expected y with the dtype"});
  write("test.safetensors", "12345");
  expect_refused(ErrorKind::DamagedData, {"set/test.safetensors: damaged"});
  put("test", x, y);
  put("train", x, y, {{"classes", "[\"a\", \"b\"]"}});
  expect_refused(ErrorKind::DamagedData, {"names 2 classes, but the largest label is 5"});
  put("train", x, y, {{"classes", "[1]"}});
  expect_refused(ErrorKind::DamagedData, {"JSON list of names"});
  put("train", x, y, {{"classes", R"(["a", "b", "c", "d", "e", "f", "g"])"}});
  EXPECT_EQ(load_dataset(options_).class_names.back(), "g");
  EXPECT_EQ(load_dataset(options_).classes, 7);
  write("train_x.npy", "");
  expect_refused(ErrorKind::DamagedData, {"expected only one of them"});
}

std::string doubts_of(const Account& account) {
  return join(account.doubts, "\n");
}

// Labels whose largest one makes more classes than there are.
TEST_F(Arrays, ClassesWithoutExamplesAreDoubtful) {
  const at::Tensor x = at::rand({60, 4});
  const at::Tensor y = at::arange(60, at::kLong).remainder(3);
  const auto account = [&](const at::Tensor& train, const at::Tensor& test) {
    put("train", x, train);
    put("test", x, test);
    const Account read = load_dataset(options_).account;
    const Account planned = dataset_shape(options_).account;
    EXPECT_EQ(read.doubts, planned.doubts);
    EXPECT_EQ(read.facts, planned.facts);
    return read;
  };
  EXPECT_EQ(doubts_of(account(y, y)), "");
  const std::string from_one = doubts_of(account(y + 1, y + 1));
  EXPECT_NE(
      from_one.find("no example has the label 0, so that 1 of the 4 classes is empty"),
      from_one.npos)
      << from_one;
  EXPECT_NE(from_one.find("data.task: classes"), from_one.npos) << from_one;
  const std::string test_only = doubts_of(account(y.clamp_max(1), at::where(y == 2, 4, y)));
  EXPECT_NE(
      test_only.find("no training example has the label 4, but 20 test examples have"),
      test_only.npos)
      << test_only;
  EXPECT_NE(test_only.find("no example has the labels 2, 3"), test_only.npos) << test_only;
  // Examples that data.subset leaves out do not count.
  options_.subset = 2;
  EXPECT_NE(doubts_of(account(y, y)).find("no training example has the label 2"), from_one.npos);
  options_.subset = 0;
  // Whoever says that they are classes, or names them, has no doubt.
  options_.task = Task::Classes;
  Account settled = account(y + 1, y + 1);
  EXPECT_EQ(doubts_of(settled), "");
  EXPECT_NE(join(settled.facts, "\n").find("no example has the label 0"), from_one.npos);
  options_.task = Task::Auto;
  put("train", x, y, {{"classes", R"(["a", "b", "c", "d"])"}});
  settled = load_dataset(options_).account;
  EXPECT_EQ(doubts_of(settled), "");
  EXPECT_NE(join(settled.facts, "\n").find("has the label d"), from_one.npos);
}

TEST_F(Arrays, LabelsThatMakeFarTooManyClassesAreRefused) {
  const at::Tensor x = at::rand({60, 4});
  const at::Tensor y = at::arange(60, at::kLong).remainder(3);
  put_both(x, at::where(y == 2, 40'000, y + 1000));
  expect_refused(
      ErrorKind::Config,
      {"data.task: the labels of", "set/train.safetensors imply 40,001 classes",
       "only 3 of them have examples (1000, 1001, 40000); expected labels 0 .. 2", "got auto"});
  put_both(x, at::where(y == 2, 255, y).to(at::kByte));
  expect_refused(
      ErrorKind::Config, {"256 classes", "remove examples labeled 255 if that means \"ignore\""});
  options_.task = Task::Classes;
  EXPECT_EQ(load_dataset(options_).classes, 256);
  options_.task = Task::Regression;
  const Dataset set = load_dataset(options_);
  EXPECT_TRUE(set.regression);
  EXPECT_EQ(set.classes, 1);
  EXPECT_EQ(all_of(set, options_, set.train).labels[2][0].item<float>(), 255);
}

TEST_F(Arrays, ALabelThatOthersIgnoreIsDoubtful) {
  const at::Tensor x = at::randint(9, {12, 6}, at::kLong);
  const at::Tensor y = at::randint(4, {12, 6}, at::kByte);
  y[3][4] = 255;
  put_both(x, y);
  const std::string doubt = doubts_of(load_dataset(options_).account);
  EXPECT_NE(
      doubt.find("label 255 is read as a class. To exclude labels from the loss, write -100"),
      doubt.npos)
      << doubt;
  put_both(x, y.to(at::kLong).masked_fill(y == 255, kIgnoredLabel));
  EXPECT_EQ(doubts_of(load_dataset(options_).account), "");
}

// As pandas and Keras make labels.
TEST_F(Arrays, FloatingPointLabelsAreNoRegressionUnlessSomeoneSaysSo) {
  const at::Tensor x = at::rand({60, 4});
  const at::Tensor labels = at::arange(60, at::kLong).remainder(3);
  const auto expect_asked = [&](const at::Tensor& y, const std::string& what) {
    put_both(x, y);
    options_.task = Task::Auto;
    expect_refused(
        ErrorKind::Config, {"data.task: the values of y in", "set/train.safetensors", what,
                            "expected classes or regression, got auto"});
  };
  const auto expect_classes = [&](const at::Tensor& y, const std::string& what) {
    expect_asked(y, what);
    options_.task = Task::Classes;
    const Dataset set = load_dataset(options_);
    EXPECT_FALSE(set.regression);
    EXPECT_EQ(set.classes, 3);
    EXPECT_TRUE(at::equal(all_of(set, options_, set.train).labels, labels));
  };
  const at::Tensor one_hot = at::zeros({60, 3}).scatter(1, labels.unsqueeze(1), 1);
  expect_classes(labels.to(at::kDouble), "whole numbers");
  expect_classes(labels.to(at::kHalf).unsqueeze(1), "whole numbers");
  expect_classes(one_hot, "one-hot labels");
  expect_asked(labels.to(at::kFloat).clamp_max(1) * 2 - 1, "whole numbers");  // -1 and 1
  put_both(x, one_hot.to(at::kUInt16));
  options_.task = Task::Classes;
  EXPECT_TRUE(at::equal(
      all_of(load_dataset(options_), options_, load_dataset(options_).train).labels, labels));
  one_hot[5].fill_(1);
  expect_asked(one_hot, "zeros and ones");
  options_.task = Task::Classes;
  expect_refused(ErrorKind::DamagedData, {"expected N labels or N one-hot rows"});
  options_.task = Task::Regression;
  Dataset set = load_dataset(options_);
  EXPECT_TRUE(set.regression);
  EXPECT_TRUE(at::equal(all_of(set, options_, set.train).labels, one_hot));
  // A label per token.
  const at::Tensor tokens = at::randint(9, {12, 6}, at::kLong);
  put_both(tokens, tokens.to(at::kFloat));
  options_.task = Task::Auto;
  expect_refused(ErrorKind::Config, {"data.task: ", "whole numbers"});
  options_.task = Task::Classes;
  set = load_dataset(options_);
  EXPECT_TRUE(set.token_labels);
  EXPECT_TRUE(at::equal(all_of(set, options_, set.train).labels, tokens));

  // Numbers: with fractions, or hardly ever the same.
  options_.task = Task::Auto;
  for (const at::Tensor& y :
       {labels * 0.5, at::arange(60, at::kFloat), one_hot * 0.5, labels.to(at::kFloat) * 1e6}) {
    put_both(x, y);
    EXPECT_TRUE(load_dataset(options_).regression);
  }
  put("train", x, labels * 0.5);
  put("test", x, labels.to(at::kFloat));
  EXPECT_TRUE(load_dataset(options_).regression);
  options_.task = Task::Classes;
  put_both(x, labels * 0.5);
  expect_refused(
      ErrorKind::DamagedData, {"the label of example 1: expected a whole number, found 0.5"});
  // One-hot integers.
  put_both(x, at::zeros({60, 5}, at::kByte).scatter(1, labels.unsqueeze(1), 1));
  EXPECT_EQ(load_dataset(options_).classes, 5);
  options_.task = Task::Auto;
  expect_refused(ErrorKind::DamagedData, {"data.task: classes takes one-hot rows"});
}

// Each type, in each part, at the ends and in the middle of what is looked at together.
TEST_F(Arrays, NumbersThatAreNotFiniteAreFoundBeforeTraining) {
  const at::Tensor y = at::arange(600, at::kLong).remainder(3);
  const at::Tensor x = at::rand({600, 1000}) - 0.5;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const auto& [example, bad, shown] :
         {std::tuple{0, nan, "nan"}, {263, -infinity, "-inf"}, {599, infinity, "inf"}}) {
      at::Tensor damaged = x.to(type).clone();
      damaged[example][17] = bad;
      for (const std::string part : {"train", "test"}) {
        put_both(x.to(type), y);
        put(part, damaged, y);
        expect_error(
            [&] { load_dataset(options_); }, ErrorKind::DamagedData,
            {formatted(
                "set/{}.safetensors: x of example {}, number 17: expected a finite number, found "
                "{}",
                part, example, shown)});
        EXPECT_EQ(dataset_shape(options_).train, 600);  // does not look at them
      }
    }
  }
  // Finite, but their differences are not, or they are not in fp32.
  for (const auto& [type, bad] : {std::pair{at::kFloat, 3e38}, {at::kDouble, -1e200}}) {
    at::Tensor damaged = x.to(type).clone();
    damaged[3][0] = bad;
    put_both(damaged, y);
    expect_error(
        [&] { load_dataset(options_); }, ErrorKind::DamagedData,
        {"x of example 3, number 0: expected a finite number of at most 1.7e38"});
  }
  at::Tensor large = x.clone();
  large[9][0] = 1e38;
  put_both(large, y);
  const std::string doubt = doubts_of(load_dataset(options_).account);
  EXPECT_NE(doubt.find("values of up to 1e+38 as they are; data.standardize"), doubt.npos) << doubt;
  options_.standardize = true;
  const Dataset set = load_dataset(options_);
  EXPECT_EQ(doubts_of(set.account), "");
  EXPECT_TRUE(at::isfinite(all_of(set, options_, set.train).inputs).all().item<bool>());
  expect_error(
      [&] { further_examples(x.clone().fill_(nan), "more.npy", set, options_); },
      ErrorKind::DamagedData, {"more.npy: x of example 0, number 0: "});
}

TEST_F(Arrays, SayWhatWasRead) {
  const at::Tensor x = at::rand({200, 5, 4, 3});
  put("train", x, at::arange(200, at::kLong).remainder(3), {{"classes", R"(["a", "b", "c"])"}});
  Account account = load_dataset(options_).account;
  EXPECT_EQ(account.task, "3 classes: a, b, c");
  ASSERT_EQ(account.facts.size(), 1U);
  EXPECT_EQ(
      account.facts[0], *options_.root +
                            ": train.safetensors; x is Float [200, 5, 4, 3], y is Long [200]; "
                            "there is no test part, so that 0.01 of the examples are the test set "
                            "(data.test_share)");
  ASSERT_EQ(account.doubts.size(), 1U);
  EXPECT_NE(account.doubts[0].find("numpy.moveaxis"), std::string::npos);
  EXPECT_EQ(dataset_shape(options_).account.doubts, account.doubts);
  put_both(at::rand({9, 4}), at::rand({9, 2}));
  account = load_dataset(options_).account;
  EXPECT_EQ(account.task, "a regression of 2 targets");
  EXPECT_EQ(
      account.facts[0],
      *options_.root +
          ": train.safetensors and test.safetensors; x is Float [9, 4], y is Float [9, 2]");
  EXPECT_TRUE(account.doubts.empty());
}

TEST_F(Arrays, ARootIsNeeded) {
  expect_refused(ErrorKind::MissingInput, {"holds no training arrays", "abtrain.save_arrays"});
  options_.root = folder_.file("nothing");
  expect_refused(ErrorKind::MissingInput, {"is not a folder", "abtrain.save_arrays"});
  options_.root.reset();
  expect_refused(ErrorKind::Config, {"data.root", "abtrain.save_arrays"});
  const Conflicts conflicts = check(options_);
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0].keys[0], "data.root");
  EXPECT_NE(conflicts[0].message.find("abtrain.save_arrays"), std::string::npos);
}

}  // namespace
}  // namespace abtrain::data
