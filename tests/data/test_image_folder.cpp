// The set image-folder: what is in it, and its batches.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/flip.h>

#include <numeric>
#include <set>

#include "data/augment.h"
#include "data/image_folder_files.h"
#include "data/images/image_files.h"
#include "data/images/image_reader.h"
#include "error_of.h"
#include "example_kinds.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

TEST(ImageFolder, ClassesAreTheSortedNamesOfTrain) {
  const TempFolder root;
  const Rgb image = smooth(30, 30, 0);
  for (const char* file :
       {"train/zebra/1.jpg", "train/Ant/1.JPEG", "train/Ant/2.jpg", "train/bee/1.jpeg",
        "val/zebra/1.jpg", "val/bee/1.jpg"}) {
    add_jpeg(root / file, image);
  }
  root.add("train/bee/readme.txt", "not an image");
  const Dataset set = load_dataset(options_of(root));
  EXPECT_EQ(set.classes, 3);
  EXPECT_EQ(set.found_in, root.path());
  EXPECT_EQ(labels_of(as_list(set.train).labels), (Indices{0, 0, 1, 2}));
  EXPECT_EQ(labels_of(as_list(set.test).labels), (Indices{1, 2}));
  EXPECT_EQ(as_list(set.train).files->path(1), root / "train/Ant/2.jpg");
  EXPECT_EQ(set.channels, 3);
  EXPECT_EQ(set.height, 24);
  EXPECT_EQ(set.width, 24);
  EXPECT_FLOAT_EQ(set.mean[0], 0.485F);
  const DatasetShape shape = dataset_shape(options_of(root));
  EXPECT_EQ(shape.train, 4);
  EXPECT_EQ(shape.test, 2);
  EXPECT_EQ(shape.classes, 3);
  EXPECT_EQ(shape.width, 24);
}

TEST(ImageFolder, WrongFolders) {
  const TempFolder root;
  const DataOptions options = options_of(root);
  const auto expect_refused = [&](ErrorKind kind, const std::vector<std::string>& parts) {
    expect_error([&] { load_dataset(options); }, kind, parts);
    expect_error([&] { dataset_shape(options); }, kind, parts);
  };
  expect_refused(
      ErrorKind::MissingInput, {root.path() + ": lacks train", "ROOT/train/CLASS/NAME.jpg",
                                "ROOT/val/CLASS/NAME.jpg", "data.root"});
  fs::create_directory(root / "train");
  fs::create_directory(root / "val");
  expect_refused(ErrorKind::DamagedData, {root / "train", "a folder for each class"});
  add_jpeg(root / "train/cat/1.jpg", smooth(9, 9, 0));
  expect_refused(ErrorKind::DamagedData, {root / "val", "a folder for each class"});
  fs::create_directories(root / "train/empty/too");
  add_jpeg(root / "val/cats/1.jpg", smooth(9, 9, 0));
  expect_refused(ErrorKind::DamagedData, {root / "train", "found none in empty", "Remove"});
  fs::remove_all(root / "train/empty");
  expect_refused(ErrorKind::DamagedData, {root / "val/cats", "only the classes of train", "'cat'"});
}

TEST(ImageFolder, MeanAndDeviationCanBeGiven) {
  const TempFolder root;
  add_image_folder(root, 1, 1, 1);
  DataOptions options = options_of(root);
  options.mean = {0.5, 0.25, 0};
  options.std = {1, 0.5, 0.25};
  const auto one = [&](const DataOptions& o) {
    const Dataset set = load_dataset(o);
    return Augment(o, set, 1).evaluation(set.test, 0, 1).inputs;
  };
  const at::Tensor given = one(options);
  const at::Tensor own = one(options_of(root));
  const float mean[] = {0.485F, 0.456F, 0.406F};
  const float deviation[] = {0.229F, 0.224F, 0.225F};
  for (int c = 0; c < 3; ++c) {
    EXPECT_TRUE(at::allclose(
        given.select(1, c) * options.std[c] + options.mean[c],
        own.select(1, c) * deviation[c] + mean[c], 1e-5, 1e-5));
  }
  options.std = {1, 1};
  expect_error(
      [&] { load_dataset(options); }, ErrorKind::Config, {"data.std: expected 3 values", "got 2"});
}

class Batches : public ::testing::TestWithParam<AugmentName> {};

// Every batch has the same bits whatever the threads, the company of an example
// and its place; another epoch or seed has others.
TEST_P(Batches, DependOnSeedEpochAndExampleAlone) {
  const TempFolder root;
  add_image_folder(root, 3, 7, 2);
  DataOptions options = options_of(root, GetParam());
  options.erase = 0.5;
  const Dataset set = load_dataset(options);
  const Augment one(options, set, 5);
  const Batch all = one.training(set.train, first(21), 3);
  EXPECT_EQ(all.inputs.sizes(), (Indices{21, 3, 24, 24}));
  EXPECT_TRUE(all.inputs.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(labels_of(all.labels), labels_of(as_list(set.train).labels));
  const at::Tensor scored = one.evaluation(set.test, 0, 6).inputs;
  for (const std::int64_t threads : {2, 5, 50}) {
    options.decode_threads = threads;
    const Augment many(options, set, 5);
    for (int repeat = 0; repeat < 3; ++repeat) {
      EXPECT_TRUE(at::equal(many.training(set.train, first(21), 3).inputs, all.inputs));
      EXPECT_TRUE(at::equal(many.evaluation(set.test, 0, 6).inputs, scored));
    }
  }
  for (const std::int64_t i : {20, 4}) {
    EXPECT_TRUE(at::equal(one.training(set.train, Indices{i}, 3).inputs[0], all.inputs[i]));
  }
  EXPECT_FALSE(at::equal(one.training(set.train, first(21), 4).inputs, all.inputs));
  EXPECT_FALSE(
      at::equal(Augment(options, set, 6).training(set.train, first(21), 3).inputs, all.inputs));
}

INSTANTIATE_TEST_SUITE_P(
    Changes, Batches,
    ::testing::Values(
        AugmentName::None, AugmentName::Flip, AugmentName::Crop, AugmentName::CropFlip));

TEST(ImageBatches, FlipMirrorsHalfOfTheCenters) {
  const TempFolder root;
  add_image_folder(root, 2, 10, 1);
  const DataOptions options = options_of(root, AugmentName::Flip);
  const Dataset set = load_dataset(options);
  const Augment augment(options, set, 2);
  // Without a crop training sees the pixels of an evaluation.
  const at::Tensor plain = augment.evaluation(set.train, 0, 20).inputs;
  int mirrored = 0;
  for (int epoch = 0; epoch < 10; ++epoch) {
    const at::Tensor now = augment.training(set.train, first(20), epoch).inputs;
    for (int i = 0; i < 20; ++i) {
      const bool is_plain = at::equal(now[i], plain[i]);
      EXPECT_TRUE(is_plain || at::equal(now[i], at::flip(plain[i], {2})));
      mirrored += !is_plain;
    }
  }
  EXPECT_NEAR(mirrored, 100, 30);  // standard deviation 7
}

// The pixels of a part of the whole image, resampled by hand.
std::vector<float> by_hand(const Bytes& jpeg, const Axis& x, const Axis& y, const ImageForm& form) {
  JpegDecoder decoder;
  decoder.open(jpeg);
  std::vector<float> out(static_cast<std::size_t>(3 * x.count * y.count));
  Resampler().run(decoder.decode(1), x, y, false, form.scale, form.shift, out.data());
  return out;
}

std::vector<float> box_by_hand(const Bytes& jpeg, const Box& box, const ImageForm& form) {
  const auto axis = [](std::int64_t begin, std::int64_t length) -> Axis {
    return {double(begin), double(begin + length), 24, 0, 24};
  };
  return by_hand(jpeg, axis(box.left, box.width), axis(box.top, box.height), form);
}

// A large image is decoded at an eighth, a quarter or half of its size; what
// comes out stays near the crop of the whole one.
TEST(ImageBatches, SmallerDecodingHardlyShows) {
  Rgb image(803, 601);
  for (std::int64_t y = 0; y < 601; ++y) {
    for (std::int64_t x = 0; x < 803; ++x) {
      image.at(y, x, 0) = static_cast<std::uint8_t>(20 + x / 4);
      image.at(y, x, 1) = static_cast<std::uint8_t>(20 + y / 3);
      image.at(y, x, 2) = static_cast<std::uint8_t>((x + y) / 6);
    }
  }
  const Bytes jpeg = jpeg_of(image, TJSAMP_444);
  const ImageForm form{24, 28, {1, 1, 1}, {0, 0, 0}};
  ImageReader reader(form);
  reader.bytes() = jpeg;
  reader.open();
  for (const Box& box :
       {Box{0, 0, 601, 803}, Box{101, 203, 300, 250}, Box{7, 11, 99, 60}, Box{3, 5, 40, 41},
        Box{500, 700, 101, 103}}) {
    std::vector<float> got(3 * 24 * 24);
    reader.write_box(box, false, got.data());
    const std::vector<float> wanted = box_by_hand(jpeg, box, form);
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(double(got[i]) - wanted[i]));
    }
    EXPECT_LE(worst, 4) << box.height << " x " << box.width;
  }
}

// Below twice the size that is wanted, every pixel counts.
TEST(ImageBatches, SmallBoxesAreDecodedInFull) {
  const Bytes jpeg = jpeg_of(noise(90, 70, 1));
  const ImageForm form{24, 28, {1, 1, 1}, {0, 0, 0}};
  ImageReader reader(form);
  reader.bytes() = jpeg;
  reader.open();
  for (const Box& box : {Box{3, 5, 47, 80}, Box{0, 0, 70, 47}}) {
    std::vector<float> got(3 * 24 * 24);
    reader.write_box(box, false, got.data());
    EXPECT_EQ(got, box_by_hand(jpeg, box, form));
  }
}

// CenterCrop's place is rounded half to even: 1.5 to 2, 2.5 to 2, 3.5 to 4.
// 64 x 40 becomes 43 x 27, 46 x 29, 49 x 31.
TEST(ImageBatches, TheCenterIsRoundedHalfToEven) {
  const Bytes jpeg = jpeg_of(noise(64, 40, 2));
  struct {
    std::int64_t resize, width, left, top;
  } const cases[] = {{27, 43, 10, 2}, {29, 46, 11, 2}, {31, 49, 12, 4}};
  for (const auto& c : cases) {
    const ImageForm form{24, c.resize, {1, 1, 1}, {0, 0, 0}};
    ImageReader reader(form);
    reader.bytes() = jpeg;
    reader.open();
    std::vector<float> got(3 * 24 * 24);
    reader.write_center(false, got.data());
    EXPECT_EQ(got, by_hand(jpeg, {0, 64, c.width, c.left, 24}, {0, 40, c.resize, c.top, 24}, form))
        << c.resize;
  }
}

TEST(ImageBatches, HoldOutSplitsTheFiles) {
  const TempFolder root;
  add_image_folder(root, 2, 10, 1);
  const DataOptions options = options_of(root);
  Dataset set = load_dataset(options);
  const Augment augment(options, set, 1);
  const at::Tensor all = augment.evaluation(set.train, 0, 20).inputs;
  const Examples held = hold_out(set.train, 6, 3);
  EXPECT_EQ(set.train.size(), 14);
  EXPECT_EQ(held.size(), 6);
  std::set<std::int64_t> seen;
  for (const Examples* part : {static_cast<const Examples*>(&set.train), &held}) {
    const Batch batch = augment.evaluation(*part, 0, part->size());
    const Indices places = labels_of(as_list(*part).places);
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_TRUE(seen.insert(places[i]).second);
      EXPECT_TRUE(at::equal(batch.inputs[i], all[places[i]]));
      EXPECT_EQ(labels_of(batch.labels)[i], places[i] / 10);
    }
  }
  EXPECT_EQ(seen.size(), 20u);
}

}  // namespace
}  // namespace abtrain::data
