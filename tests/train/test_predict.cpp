// What a model says of image files, beside its own passes and evaluations.
#include "train/predict.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "config/run_length.h"
#include "data/image_folder_files.h"
#include "error_of.h"
#include "weights/model_file.h"

namespace abtrain::train {
namespace {

namespace fs = std::filesystem;

class PredictFixedSize : public ::testing::Test {
 protected:
  PredictFixedSize() {
    options_.device = device::DeviceChoice::Cpu;
    options_.train.precision = at::kFloat;
    options_.model.hidden = {8};
    options_.evaluate.batch_size = 2;
  }
  // Saves a fresh model, as of a run that has just begun.
  nn::Model& save(const weights::About& about) {
    model_ = nn::make_model(options_.model, data::dataset_shape(options_.data));
    model_->initialize(options_.model.init, 3);
    weights::save_model(folder_ / "model.safetensors", *model_, {.about = about});
    return *model_;
  }
  Predictions predicted(const std::vector<std::string>& files, std::int64_t top = 10) {
    Log log(LogLevel::Quiet);
    return predict(options_, {{folder_.path()}, files, top}, log);
  }
  std::string add(const std::string& name, std::int64_t side, double phase) {
    data::add_jpeg(folder_ / name, data::smooth(side, side, phase), TJSAMP_444);
    return folder_ / name;
  }
  // The pixels of a file of the right size, 1 x C x side x side.
  static at::Tensor pixels_of(const std::string& path, bool gray) {
    const std::string bytes = read_file(path);
    data::JpegDecoder decoder;
    decoder.open(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    const data::Picture picture = decoder.decode(1);
    const at::Tensor pixels = at::empty({1, gray ? 1 : 3, picture.height, picture.width});
    auto* out = pixels.data_ptr<float>();
    const std::int64_t count = picture.height * picture.width;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint8_t* rgb = picture.pixels + 3 * i;
      for (int c = 0; c < (gray ? 1 : 3); ++c) {
        // Pillow's convert("L"), from its documentation, in 16 bits.
        out[c * count + i] = static_cast<float>(
            gray ? (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16 : rgb[c]);
      }
    }
    return pixels;
  }
  void expect_probabilities(
      const Prediction& prediction, nn::Model& model, const at::Tensor& inputs) const {
    const at::NoGradGuard no_grad;
    const at::Tensor shares = at::softmax(model.forward(inputs, false).to(at::kDouble), 1)[0];
    const at::Tensor classes = at::tensor(prediction.classes, at::kLong);
    const at::Tensor found = at::tensor(prediction.probabilities, at::kDouble);
    EXPECT_TRUE(at::allclose(shares.index_select(0, classes), found, 1e-5, 1e-7))
        << prediction.file;
    EXPECT_TRUE(std::ranges::is_sorted(prediction.probabilities, std::ranges::greater()));
  }

  const TempFolder folder_;
  config::RunOptions options_;
  std::unique_ptr<nn::Model> model_;
};

TEST_F(PredictFixedSize, ColorImagesAsTheEvaluationNormalizesThem) {
  options_.data.name = "cifar10";
  nn::Model& model = save({{"mean", "0.5,0.25,0.125"}, {"std", "0.5,0.25,2"}, {"classes", "10"}});
  const std::vector<std::string> files = {
      add("b.jpg", 32, 1), add("a.jpg", 32, 2), add("c.jpg", 32, 3)};
  const Predictions found = predicted(files);
  EXPECT_TRUE(found.class_names.empty());
  ASSERT_EQ(found.of_files.size(), 3U);
  const auto channel = [](const std::vector<float>& values) {
    return at::tensor(values).view({1, 3, 1, 1});
  };
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.of_files[i].file, files[i]);
    expect_probabilities(
        found.of_files[i], model,
        (pixels_of(files[i], false) / 255 - channel({0.5, 0.25, 0.125})) / channel({0.5, 0.25, 2}));
  }
  EXPECT_EQ(predicted(files, 2).of_files[2].classes.size(), 2U);
  // A larger image is made smaller.
  const Predictions larger = predicted({add("d.jpg", 64, 1)}, 99);
  EXPECT_EQ(larger.of_files[0].classes.size(), 10U);
}

TEST_F(PredictFixedSize, GrayImagesWholeAndPooled) {
  options_.data.name = "fashion-mnist";
  for (const std::int64_t pool : {0, 7}) {
    options_.data.pool = pool;
    nn::Model& model = save({{"mean", "0.25"}, {"std", "0.5"}});
    const std::string file = add("gray.jpg", 28, 1);
    at::Tensor values = pixels_of(file, true) / 255;
    if (pool > 0) {
      values = at::avg_pool2d(values, {4, 4});
    }
    expect_probabilities(predicted({file}).of_files.front(), model, (values - 0.25) / 0.5);
  }
}

TEST_F(PredictFixedSize, TakesFoldersAndLeavesDamagedFilesOut) {
  options_.data.name = "cifar10";
  save(
      {{"mean", "0,0,0"},
       {"std", "1,1,1"},
       {"classes", R"(["a","b","c","d","e","f","g","h","i","j"])"}});
  for (const char* name : {"p/b/1.jpg", "p/a.JPEG", "p/b/0.jpg", "p/.hidden/2.jpg", "p/bad.jpg"}) {
    add(name, 32, 1);
  }
  folder_.add("p/notes.txt", "no image");
  fs::resize_file(folder_ / "p/bad.jpg", 100);
  const Predictions found = predicted({folder_ / "p"});
  std::vector<std::string> files;
  for (const Prediction& of : found.of_files) {
    files.push_back(of.file.substr(folder_.path().size() + 1));
  }
  EXPECT_EQ(files, (std::vector<std::string>{"p/a.JPEG", "p/b/0.jpg", "p/b/1.jpg"}));
  EXPECT_EQ(found.damaged, 1);
  EXPECT_EQ(found.class_names[3], "d");
}

TEST_F(PredictFixedSize, RefusesWhatDoesNotFit) {
  options_.data.name = "cifar10";
  const std::string file = add("a.jpg", 32, 1);
  const auto expect = [&](const std::vector<std::string>& files, int code,
                          const std::string& part) {
    expect_error([&] { predicted(files); }, ErrorKind(code), {part});
  };
  save({{"mean", "0,0,0"}, {"std", "1,1,1"}});
  fs::create_directory(folder_ / "none");
  expect({folder_ / "none"}, 66, "none: expected .jpg, .jpeg, .png or .webp files");
  expect({file, folder_ / "gone.jpg"}, 66, "no file '");
  expect({folder_.add("x.npy", "")}, 2, "x.npy: expected JPEG, PNG or WebP files");
  expect({folder_.add("a\nb.jpg", "")}, 2, "name of one line");
  save({{"mean", "0,0"}, {"std", "1,1,1"}});
  expect({file}, 65, "a mean and a standard deviation for each of 3 channels");
  save({{"mean", "0,0,x"}, {"std", "1,1,1"}});
  expect({file}, 65, "the mean of each channel in its metadata");
  save({});
  expect({file}, 65, "the mean of each channel in its metadata");
  save({{"classes", R"(["one"])"}});
  expect({file}, 65, "expected the names of 10 classes in its metadata, got 1");
  save({{"classes", R"([1, 2])"}});
  expect({file}, 65, "expected the names of 10 classes in its metadata");
  options_.data.name = "gcide";
  expect({file}, 78, "`abtrain generate` continues a text");
}

}  // namespace
}  // namespace abtrain::train
