// Whole runs on a folder of JPEG files, some of them damaged.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/image_folder_files.h"
#include "plan/plan.h"
#include "train/session.h"

namespace abtrain::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ImageRun : public ::testing::Test {
 protected:
  ImageRun() {
    for (int c = 0; c < 2; ++c) {
      for (int i = 0; i < 12; ++i) {
        data::add_jpeg(
            root_ / formatted("{}/c{}/{}.jpg", i < 8 ? "train" : "val", c, i),
            data::smooth(40 + i, 30 + 3 * i, 2 * c + 0.01 * i));
      }
    }
    options_.name = "images";
    options_.output = root_ / "runs";
    options_.workers = 2;
    options_.device = device::DeviceChoice::Cpu;
    options_.data.name = "image-folder";
    options_.data.root = root_.path();
    options_.data.image_size = 16;
    options_.data.resize = 18;
    options_.data.batch_size = 3;
    options_.data.augment = data::AugmentName::CropFlip;
    options_.data.validation = 2;
    options_.model.hidden = {8};
    options_.method.name = "ddp";
    options_.train.epochs = 4;
    options_.evaluate.batch_size = 3;
    options_.optimizer.lr = 1e-2;
  }
  void cut(const std::string& name) const {
    const std::string path = root_ / name;
    fs::resize_file(path, fs::file_size(path) / 2);
  }
  SessionResult trained() const {
    Log log(LogLevel::Quiet);
    return train(options_, {}, log);
  }
  const TempFolder root_;
  config::RunOptions options_;
};

TEST_F(ImageRun, TrainsAndEvaluatesToTheSameFigure) {
  const SessionResult result = trained();
  const json summary = json::parse(result.summary);
  EXPECT_EQ(summary["steps"], 8);  // 14 images, 2 workers x 3
  EXPECT_EQ(summary["damaged_images"]["count"], 0);
  EXPECT_EQ(result.table.find("damaged"), std::string::npos);
  EXPECT_GT(summary["accuracy"], 0.5);  // two quite different pictures
  Log log(LogLevel::Quiet);
  const json again = json::parse(evaluate_run(options_, options_.output + "/images", "", log));
  EXPECT_EQ(again["accuracy"], summary["accuracy"]);
  EXPECT_EQ(again["images"], 8);
  EXPECT_NE(
      plan::plan_text(options_).find("14 training and 8 test images of 3x16x16"),
      std::string::npos);
}

// The same model whatever the number of threads that decode.
TEST_F(ImageRun, DecodeThreadsDoNotChangeTheResult) {
  const auto model = [&](std::int64_t threads) {
    options_.data.decode_threads = threads;
    options_.name = formatted("threads{}", threads);
    return read_file(trained().folder + "/model.safetensors");
  };
  const std::string one = model(1);
  EXPECT_TRUE(model(4) == one);
}

TEST_F(ImageRun, SurvivesAFewDamagedFiles) {
  cut("train/c1/2.jpg");
  cut("val/c0/10.jpg");
  const SessionResult result = trained();
  const json summary = json::parse(result.summary);
  EXPECT_EQ(summary["damaged_images"]["count"], 2);
  EXPECT_EQ(
      summary["damaged_images"]["files"],
      (json{root_ / "train/c1/2.jpg", root_ / "val/c0/10.jpg"}));
  EXPECT_NE(result.table.find("damaged images    2 left out: "), std::string::npos) << result.table;
  // Of seven images, not eight.
  const double correct = summary["accuracy"].get<double>() * 7;
  EXPECT_NEAR(correct, std::round(correct), 1e-9);
  Log log(LogLevel::Quiet);
  const json again = json::parse(evaluate_run(options_, options_.output + "/images", "", log));
  EXPECT_EQ(again["images"], 7);
  EXPECT_EQ(again["accuracy"], summary["accuracy"]);
}

TEST_F(ImageRun, TooManyDamagedFilesEndIt) {
  cut("train/c0/1.jpg");
  cut("train/c1/2.jpg");
  cut("train/c1/5.jpg");
  try {
    trained();
    FAIL() << "the run went on";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.exit_code(), 65) << message;
    EXPECT_NE(message.find("data.max_damaged"), std::string::npos) << message;
    EXPECT_NE(message.find("allows 1 of the 16 training images"), std::string::npos) << message;
    EXPECT_NE(message.find(".jpg: "), std::string::npos) << message;
    const json failure = json::parse(read_file(options_.output + "/images/failure.json"));
    EXPECT_EQ(failure["exit_code"], 65);
    EXPECT_EQ(failure["message"], message);
  }
  EXPECT_FALSE(fs::exists(options_.output + "/images/summary.json"));
}

TEST_F(ImageRun, TooManyDamagedTestImagesEndItToo) {
  for (const char* name : {"val/c0/8.jpg", "val/c1/9.jpg"}) {
    cut(name);
  }
  try {
    trained();
    FAIL() << "the run went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 65) << error.what();
    EXPECT_NE(std::string(error.what()).find("images in val"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace abtrain::train
